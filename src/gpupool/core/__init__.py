"""What exists. Pure values and rules; imports the standard library only."""
