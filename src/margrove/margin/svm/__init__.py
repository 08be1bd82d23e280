"""Support vector machines with a kernel: SVC, NuSVC, SVR, NuSVR, OneClassSVM."""
