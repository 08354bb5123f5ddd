# The one LibTorch that assay is built for, with its local part, and what came with it.
set(ASSAY_TORCH_VERSION "2.11.0+cu130")
set(ASSAY_TORCH_CUDA "13000")  # CUDA_VERSION of that wheel
set(ASSAY_TORCH_NCCL "22809")  # NCCL_VERSION_CODE of the nvidia-nccl that it requires
