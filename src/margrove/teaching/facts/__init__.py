"""Values behind the pictures of the lectures."""
