"""The functions that the guide is about: one module an idea, each short enough to read in a minute."""
