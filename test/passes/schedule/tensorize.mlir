// Threads get tiles of a contraction, and instructions that multiply.
// RUN: deplo-opt %s -p 'tileify,split{axis=k by=32 into=k_block,k},stage{to=shared},tensorize{axes=i,j by=2,4 strips=1,2}' --check-each-pass | FileCheck %s --check-prefix=FMA
// RUN: deplo-opt %s -p 'tileify,split{axis=k by=32 into=k_block,k},stage{to=shared},tensorize{axes=i,j by=2,4 instr=m16n8k16}' | FileCheck %s --check-prefix=MMA
// RUN: deplo-opt %s -p 'tileify,split{axis=k by=32 into=k_block,k},stage{to=shared},tensorize{axes=i,j by=2,4 instr=m16n8k16},materialize-tile' --check-each-pass >/dev/null
// RUN: deplo-opt %s -p 'tileify,split{axis=k by=32 into=k_block,k},stage{to=shared},tensorize{axes=i,j by=2,4 instr=m16n8k16},tensorize{axes=i,j by=2,1},split{axis=i by=2}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=TWICE
// RUN: deplo-opt %s -p 'tileify,tensorize{axes=i,j by=2,4 instr=m16n8k16},tensorize{axes=i,j by=3,1},tensorize{axes=i,l by=2,2},bind{axis=i to=block},tensorize{axes=i,j by=2,2}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=DECLINED
// RUN: deplo-opt %s -p 'tileify,split{axis=k by=32 into=k_block,k},stage{to=shared},tensorize{axes=i,j by=2,4 instr=wgmma}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=WGMMA
// RUN: not deplo-opt %s -p 'tensorize{axes=i,j by=2}' 2>&1 | FileCheck %s --check-prefix=BY
// RUN: not deplo-opt %s -p 'tensorize{axes=i,j by=4,4 strips=3,1}' 2>&1 | FileCheck %s --check-prefix=STRIPS
// RUN: not deplo-opt %s -p 'tensorize{axes=i by=4 instr=m16n8k16}' 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: not deplo-opt %s -p 'tensorize{axes=i,j by=4,4 instr=amx}' 2>&1 | FileCheck %s --check-prefix=WORD

// Rows 8 apart, columns in pairs that are 8 apart; two rows and four columns are loaded for eight products.
// FMA:         tile.launch (%i = 8 : thread, %j = 4 : thread) {
// FMA:           loop.for %k = 0 to 32 reduce(add, add, add, add, add, add, add, add)
// FMA-COUNT-6:     loop.load
// FMA-NOT:         loop.load
// FMA:             loop.yield
// FMA:           loop.store %{{.*}}, %y[%i, %j * 2]
// FMA-NEXT:      loop.store %{{.*}}, %y[%i, %j * 2 + 1]
// FMA-NEXT:      loop.store %{{.*}}, %y[%i, %j * 2 + 8]
// MMA:         tile.launch (%i = 8 : thread, %j = 4 : thread) {
// MMA-COUNT-2:     tile.mma
// TWICE: remark: tensorize: product: each thread computes 2 by 4 elements by m16n8k16
// TWICE: remark: tensorize: product: declined: its threads multiply together already
// TWICE: remark: split: product: declined: its threads already work together
// DECLINED: remark: tensorize: product: declined: its operands are not staged
// DECLINED: remark: tensorize: product: declined: no tiles of 3 divide the 16 points of i
// DECLINED: remark: tensorize: product: declined: no axis of the launch is named l; its axes are i, j
// DECLINED: remark: tensorize: product: declined: i does not count threads
// WGMMA: remark: tensorize: product: declined: for mma, 4 threads share a row and 128 multiply together
// BY: axes are names, each once, and by has a number for each
// STRIPS: by and strips are 1 or more, and strips divide by
// ONE: m16n8k16 has axes of rows and of columns, and strips of its own
// WORD: instr is one of fma, wgmma, m16n8k32, m16n8k16, m16n8k8, m8n8k4, not amx
func.func @main(%x: tensor<16x64xbf16>, %w: tensor<16x64xbf16>) -> tensor<16x16xf32> {
  %y = loop.kernel @product(%x, %w) : (tensor<16x64xbf16>, tensor<16x64xbf16>) -> tensor<16x16xf32> {
  ^bb0(%x: memref<16x64xbf16>, %w: memref<16x64xbf16>, %y: memref<16x16xf32>):
    loop.for %i = 0 to 16 {
      loop.for %j = 0 to 16 {
        %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
          %a = loop.load %x[%i, %k] : memref<16x64xbf16>
          %b = loop.load %w[%j, %k] : memref<16x64xbf16>
          %af = arith.extf %a : bf16 to f32
          %bf = arith.extf %b : bf16 to f32
          %p = arith.mulf %af, %bf : f32
          loop.yield %p : f32
        }
        loop.store %s, %y[%i, %j] : memref<16x16xf32>
      }
    }
  }
  func.return %y : tensor<16x16xf32>
}
