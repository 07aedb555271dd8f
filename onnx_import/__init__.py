"""ONNX in: what a model file says, as lazy expressions that one program computes.

`importing.py` walks the graph, `rules.py` has the table of what operators mean, the other files fill it.
"""
