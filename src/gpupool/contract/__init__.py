"""The contract between the programs: names, annotations and messages with their codecs. No I/O."""
