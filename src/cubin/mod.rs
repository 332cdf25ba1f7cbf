//! Cubin files: the ELF that the CUDA driver loads, in and out.
