"""Support vector machines with a kernel: SVC, NuSVC, SVR, NuSVR, OneClassSVM.

svc                         SVC and NuSVC, support vector machines for classification
svr                         SVR and NuSVR, support vector machines for regression
one_class_svm               OneClassSVM, which finds the region of the data
kernel_machine              the base class of kernel machines: parameters, training set, expansions
support_vector_machine      the base class of the five support vector machines: solvers, warnings
support_vector_classifier   the base class of SVC and NuSVC: classes, predictions, probabilities
single_machine              the base class of machines with one dual problem over all rows
problems                    the machines as one quadratic problem, five builders, the duality gap
joint_fits                  fits of many small machines together, as those of bagging
machine_tasks               the machines of a fit, and their solution in other processes
multiclass                  many classes by binary machines: one-vs-one, or one-vs-rest
probabilities               calibrated probabilities of a support vector classifier
calibration                 sigmoids, pairwise coupling, and agreement with `predict`
certificates                proofs of how good a fitted support vector machine is
machine_views               the machines of a fitted model, as its certificate sees them
data_warnings               warnings about data and kernels that make a machine useless
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
