"""State Atlas: where sequence models keep their state."""
