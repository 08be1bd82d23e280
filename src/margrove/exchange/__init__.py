"""Model files and translations: LIBSVM, ONNX and others."""
