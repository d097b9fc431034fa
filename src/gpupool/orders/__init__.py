"""What people order about cards and shares that are in use. Commands and the console share it."""
