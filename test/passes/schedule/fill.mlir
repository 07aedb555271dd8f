// How slabs are filled, said of all or of each in turn.
// RUN: deplo-opt %s -p 'tileify,split{axis=k by=16 into=k_block,k},stage{to=shared},fill{via=cp_async pad=4,0 buffers=3},pipeline{axis=k_block}' --check-each-pass | FileCheck %s
// RUN: deplo-opt %s -p 'tileify,split{axis=k by=16 into=k_block,k},stage{to=shared},fill{via=tma swizzle=0,64},fill{via=sync,tma row=20,16}' --check-each-pass | FileCheck %s --check-prefix=TMA
// RUN: deplo-opt %s -p 'tileify,fill{pad=1},split{axis=k by=16 into=k_block,k},split{axis=k by=4},split{axis=k_block by=4},stage{to=shared},fill,fill{pad=1,2,3},fill{via=tma pad=1},fill{swizzle=32},fill{row=8},fill{via=cp_async pad=1,0 row=17,16},fill{buffers=9},fill{buffers=2},pipeline{axis=k_block},fill{buffers=3}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: not deplo-opt %s -p 'fill{via=dma}' 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: deplo-opt %s -p 'tileify,split{axis=k by=16 into=k_block,k},split{axis=i by=8 into=i_block,i_thread},bind{axis=i_block to=block},stage{to=shared},fill{via=tma multicast=2},split{axis=i_block by=3},split{axis=i_block by=2},bind{axis=i_block_inner to=cluster},fill{via=tma multicast=0,2}' --remarks 2>&1 | FileCheck %s --check-prefix=CLUSTER
// RUN: deplo-opt %s -p 'tileify,split{axis=k by=16 into=k_block,k},split{axis=i by=8 into=i_block,i_thread},split{axis=j by=4 into=j_block,j_thread},bind{axis=i_block to=block},bind{axis=j_block to=block},stage{to=shared},split{axis=i_block by=2 into=i_part,i_in},reorder{axes=j_block,i_in}' --check-each-pass | FileCheck %s --check-prefix=ORDER

// CHECK:       tile.stage %x[0, %k_block * 16] pad 4 buffers 3 via cp_async : memref<32x64xf32> -> memref<32x16xf32, "shared">
// CHECK-NEXT:  tile.stage %w[0, %k_block * 16] buffers 3 via cp_async : memref<8x64xf32> -> memref<8x16xf32, "shared">
// CHECK:       } attributes {pipelined}
// TMA:         tile.stage %x[0, %k_block * 16] : memref<32x64xf32> -> memref<32x20xf32, "shared">
// TMA-NEXT:    tile.stage %w[0, %k_block * 16] via tma swizzle 64 : memref<8x64xf32> -> memref<8x16xf32, "shared">
// REMARK: fill: product: declined: nothing is staged
// REMARK: split: product: declined: k counts within chunks already
// REMARK: split: product: declined: k_block has loops of its own
// REMARK: stage: product: what several sweeps read is kept in shared
// REMARK: fill: product: declined: it says nothing: no option is given
// REMARK: fill: product: declined: pad has 3 values; the slabs are x_smem, w_smem
// REMARK: fill: product: declined: x_smem: the copy engine leaves no room between rows; pad must be absent
// REMARK: fill: product: declined: x_smem: only what goes by tma can be swizzled
// REMARK: fill: product: declined: x_smem: rows of 16 elements are read, not of 8
// REMARK: fill: product: via cp_async, row 17,16, pad 1,0
// REMARK: fill: product: declined: x_smem: 2 to 8 buffers take turns, not 9
// REMARK: fill: product: buffers 2
// REMARK: pipeline: product: k_block copies ahead
// REMARK: fill: product: declined: x_smem: its loop copies ahead already
// WORD: via is one of sync, cp_async, tma, not dma
// Blocks may be split, ordered and form clusters after their threads work together, in whole parts.
// CLUSTER-DAG: fill: product: declined: x_smem: is multicast to 2 blocks of clusters of 1
// CLUSTER-DAG: split: product: declined: 4 blocks are no whole parts of 3
// CLUSTER-DAG: tile.launch (%i_block_outer = 2 : block, %i_block_inner = 2 : cluster, %i_thread = 8 : thread, %j = 8 : thread) {
// CLUSTER-DAG: tile.stage %w[0, %k_block * 16] via tma multicast 2 : memref<8x64xf32> -> memref<8x16xf32, "shared">
// ORDER:       tile.launch (%i_part = 2 : block, %j_block = 2 : block, %i_in = 2 : block, %i_thread = 8 : thread, %j_thread = 4 : thread) {
func.func @main(%x: tensor<32x64xf32>, %w: tensor<8x64xf32>) -> tensor<32x8xf32> {
  %y = loop.kernel @product(%x, %w) : (tensor<32x64xf32>, tensor<8x64xf32>) -> tensor<32x8xf32> {
  ^bb0(%x: memref<32x64xf32>, %w: memref<8x64xf32>, %y: memref<32x8xf32>):
    loop.for %i = 0 to 32 {
      loop.for %j = 0 to 8 {
        %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
          %a = loop.load %x[%i, %k] : memref<32x64xf32>
          %b = loop.load %w[%j, %k] : memref<8x64xf32>
          %p = arith.mulf %a, %b : f32
          loop.yield %p : f32
        }
        loop.store %s, %y[%i, %j] : memref<32x8xf32>
      }
    }
  }
  func.return %y : tensor<32x8xf32>
}
