"""Support vector machines with a kernel: SVC, NuSVC, SVR, NuSVR, OneClassSVM.

calibration                 probabilities of support vector classifiers that always agree with
                            `predict`
certificates                proof of how good a fitted support vector machine is
data_warnings               warnings about data and kernels that make a machine useless though
                            nothing is wrong with it
gaps                        how far from optimal a point of a dual problem can be
kernel_machine              what the kernel machines share
machine_tasks               the machines of a fit, and how to solve them as tasks of other
                            processes
multiclass                  many classes out of binary machines: one against one, or one against
                            the rest
one_class_svm               OneClassSVM, the region where the data are
probabilities               probabilities of a support vector classifier: calibrated on rows it
                            has not seen
problems                    the support vector machines as one quadratic problem, and five
                            builders of it
single_machine              what the machines share that have one dual problem over all rows
support_vector_classifier   what SVC and NuSVC share: classes and machines, predictions,
                            probabilities
support_vector_machine      what the five support vector machines share: parameters, solvers,
                            warnings
svc                         SVC and NuSVC, support vector machines for classification
svr                         SVR and NuSVR, support vector machines for regression
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
