// A schedule is for a machine that has what it uses; without an axis a primitive says which there are.
// RUN: not deplo-opt %s -p 'apply-schedules{target=sm_80 given="product: tileify,split{axis=k by=64 into=k_block,k},stage{to=shared},tensorize{axes=i,j by=2,2 instr=wgmma}"}' 2>&1 | FileCheck %s --check-prefix=GROUPS
// RUN: not deplo-opt %s -p 'apply-schedules{target=sm_80 given="product: tileify,split{axis=k by=64 into=k_block,k},stage{to=shared},fill{via=tma}"}' 2>&1 | FileCheck %s --check-prefix=ENGINE
// RUN: not deplo-opt %s -p 'apply-schedules{target=sm_80 given="product: tileify,split{axis=i by=32},bind{axis=i_outer to=block},bind{axis=i_outer to=cluster}"}' 2>&1 | FileCheck %s --check-prefix=CLUSTERS
// RUN: deplo-opt %s -p 'apply-schedules{target=sm_90a given="product: tileify,split{axis=k by=64 into=k_block,k},stage{to=shared},tensorize{axes=i,j by=2,2 instr=wgmma}"}' | FileCheck %s
// RUN: deplo-opt %s -p 'tileify,split{by=2}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=AXIS

// GROUPS: schedule of product: sm_80 has no warpgroups that multiply
// ENGINE: schedule of product: sm_80 has no copy engine
// CLUSTERS: schedule of product: sm_80 has no clusters of blocks
// CHECK: tile.wgmma %{{.*}} by %{{.*}} to 4
// AXIS: split: product: declined: no axis is given; its axes are i, j
func.func @main(%x: tensor<64x64xbf16>, %w: tensor<8x64xbf16>) -> tensor<64x8xf32> {
  %y = loop.kernel @product(%x, %w) : (tensor<64x64xbf16>, tensor<8x64xbf16>) -> tensor<64x8xf32> {
  ^bb0(%x: memref<64x64xbf16>, %w: memref<8x64xbf16>, %y: memref<64x8xf32>):
    loop.for %i = 0 to 64 {
      loop.for %j = 0 to 8 {
        %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
          %a = loop.load %x[%i, %k] : memref<64x64xbf16>
          %b = loop.load %w[%j, %k] : memref<8x64xbf16>
          %af = arith.extf %a : bf16 to f32
          %bf = arith.extf %b : bf16 to f32
          %p = arith.mulf %af, %bf : f32
          loop.yield %p : f32
        }
        loop.store %s, %y[%i, %j] : memref<64x8xf32>
      }
    }
  }
  func.return %y : tensor<64x8xf32>
}
