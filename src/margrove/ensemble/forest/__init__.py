"""Random forests and extremely randomised trees, and what can be measured of them."""
