"""One program of each level of the IR, as a person writes it: elements are doubled, or rows are added up."""

TORCH = """
func.func @main(%x: tensor<8x16xf32>) -> tensor<8xf32> {
  %e = torch.exp %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %s = torch.sum %e {dim = [1]} : (tensor<8x16xf32>) -> tensor<8xf32>
  func.return %s : tensor<8xf32>
}
"""

TENSOR_IR = """
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x1xf32> {
  %e = tensor_ir.elementwise exp(%x) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %s = tensor_ir.reduce add(%e) over [1] : tensor<8x16xf32> -> tensor<8x1xf32>
  func.return %s : tensor<8x1xf32>
}
"""

LOOP = """
func.func @main(%x: tensor<8x16xf32>) -> tensor<8xf32> {
  %s = loop.kernel @k_sum(%x) : (tensor<8x16xf32>) -> tensor<8xf32> {
  ^bb0(%in: memref<8x16xf32>, %out: memref<8xf32>):
    loop.for %i = 0 to 8 {
      %sum = loop.for %k = 0 to 16 reduce(add) -> f32 {
        %v = loop.load %in[%i, %k] : memref<8x16xf32>
        loop.yield %v : f32
      }
      loop.store %sum, %out[%i] : memref<8xf32>
    }
  }
  func.return %s : tensor<8xf32>
}
"""

TILE = """
func.func @main(%x: tensor<8x16xf32>) -> tensor<8xf32> {
  %s = loop.kernel @k_sum(%x) : (tensor<8x16xf32>) -> tensor<8xf32> {
  ^bb0(%in: memref<8x16xf32>, %out: memref<8xf32>):
    tile.launch (%i = 8 : thread) {
      %sum = loop.for %k = 0 to 16 reduce(add) -> f32 {
        %v = loop.load %in[%i, %k] : memref<8x16xf32>
        loop.yield %v : f32
      }
      loop.store %sum, %out[%i] : memref<8xf32>
    }
  }
  func.return %s : tensor<8xf32>
}
"""

KERNEL = """
kernel.func @k_double(%x: memref<64xf32>, %y: memref<64xf32>) blocks(2) threads(32) {
  %b = kernel.block_id
  %t = kernel.thread_id
  %v = loop.load %x[%b * 32 + %t] : memref<64xf32>
  %w = arith.addf %v, %v : f32
  loop.store %w, %y[%b * 32 + %t] : memref<64xf32>
}
func.func @main(%x: memref<64xf32>) -> memref<64xf32> {
  %y = kernel.alloc : memref<64xf32>
  kernel.launch @k_double(%x, %y) blocks(2) threads(32) : memref<64xf32>, memref<64xf32>
  func.return %y : memref<64xf32>
}
"""

CUDA = """
cuda.func @k_double(%x: memref<64xf32>, %y: memref<64xf32>) blocks(2) threads(32) index(i32) {
  %b = kernel.block_id
  %t = kernel.thread_id
  %v = loop.load %x[%b * 32 + %t] : memref<64xf32>
  %w = arith.addf %v, %v : f32
  loop.store %w, %y[%b * 32 + %t] : memref<64xf32>
}
"""

SCF = """
func.func @k_double(%x: memref<64xf32>, %y: memref<64xf32>, %begin: index, %end: index,
                    %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %block = %begin to %end step %c1 {
    scf.for %i = %c0 to %c32 step %c1 {
      %v = loop.load %x[%block * 32 + %i] : memref<64xf32>
      %w = arith.addf %v, %v : f32
      loop.store %w, %y[%block * 32 + %i] : memref<64xf32>
    }
  }
  func.return
}
func.func @main(%x: memref<64xf32>) -> memref<64xf32> {
  %y = kernel.alloc : memref<64xf32>
  kernel.launch @k_double(%x, %y) blocks(2) threads(1) : memref<64xf32>, memref<64xf32>
  func.return %y : memref<64xf32>
}
"""

LLVM = """
llvm.func @double(%x: !llvm.ptr, %y: !llvm.ptr) {
  %v = llvm.load %x : !llvm.ptr -> f32
  %w = llvm.fadd %v, %v : f32
  llvm.store %w, %y : f32, !llvm.ptr
  llvm.return
}
"""

MLIR = """
func.func @double(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %v = memref.load %x[%i] : memref<64xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %y[%i] : memref<64xf32>
  }
  func.return
}
"""

PROGRAMS = {
    "torch": TORCH,
    "tensor_ir": TENSOR_IR,
    "loop": LOOP,
    "tile": TILE,
    "kernel": KERNEL,
    "cuda": CUDA,
    "scf": SCF,
    "llvm": LLVM,
    "mlir": MLIR,
}
"""Level -> its program."""
