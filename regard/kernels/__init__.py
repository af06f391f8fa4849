"""The roads: the same mathematics as `core`, fast and in little memory."""
