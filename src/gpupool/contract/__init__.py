"""What the programs say to each other. Names and codecs; no I/O."""
