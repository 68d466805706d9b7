//! Two kernels on the same inputs, judged by bits and by honest time. Which device runs them is not known here.
