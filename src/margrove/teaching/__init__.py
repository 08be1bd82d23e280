"""What belongs to the lectures: values and pictures of algorithms at work."""
