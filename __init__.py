"""deplo: an ML compiler you can read.

Importing this package is cheap: the public names below load their modules on first use.
"""
