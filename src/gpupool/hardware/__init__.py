"""Where GPUs come from: an edge, below the programs and beside the API's client."""
