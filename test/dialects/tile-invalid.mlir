// What each check of the tile dialect says.
// RUN: deplo-opt %s --split-input-file --verify-diagnostics

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    // expected-error@+1 {{axis extent must not be negative, got -4}}
    tile.launch (%r = -4 : block) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    // expected-error@+1 {{Expected `block`, `cluster`, or `thread`}}
    tile.launch (%r = 4 : warp) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    // expected-error@+1 {{2048 threads exceed the 1024 a block can hold}}
    tile.launch (%r = 4 : block, %t = 2048 : thread) schedule(#tile.schedule<>) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    // expected-error@+1 {{schedule says 16 threads, the axes have 8}}
    tile.launch (%r = 4 : block, %t = 8 : thread) schedule(#tile.schedule<threads = 16>) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    // expected-error@+1 {{unknown choice `thread`; a schedule has threads, serial}}
    tile.launch (%r = 4 : block) schedule(#tile.schedule<thread = 16>) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    // expected-error@+1 {{`threads` is chosen twice}}
    tile.launch (%r = 4 : block) schedule(#tile.schedule<threads = 16, vector = 4, threads = 32>) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    // expected-error@+1 {{`lanes` must be a power of two, at most 1024, got 12}}
    tile.launch (%r = 4 : block) schedule(#tile.schedule<lanes = 12>) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    // expected-error@+1 {{`serial` must be a number, 1 or more}}
    tile.launch (%r = 4 : block) schedule(#tile.schedule<serial = 0>) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    // expected-error@+1 {{expected #tile.schedule<...>, got 1 : i32}}
    tile.launch (%r = 4 : block) schedule(1 : i32) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block, %t = 8 : thread) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      // expected-error@+1 {{body must take one index per axis, 1 in all}}
      "tile.launch"() <{axes = [#tile<axis 4 : block>]}> ({
      ^bb0:
      }) : () -> ()
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block, %t = 8 : thread) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      // expected-error@+1 {{1 indices into rank-2 memref<4x8xf32>}}
      %s = tile.stage %x[%r] : memref<4x8xf32> -> memref<8xf32, "shared">
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block, %t = 8 : thread) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      // expected-error@+1 {{the slab must be in memory space "shared"}}
      %s = tile.stage %x[%r, 0] : memref<4x8xf32> -> memref<8xf32>
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block, %t = 8 : thread) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      // expected-error@+1 {{has more axes than its source}}
      %s = tile.stage %x[%r, 0] : memref<4x8xf32> -> memref<1x1x8xf32, "shared">
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block, %t = 8 : thread) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      // expected-error@+1 {{the slab's origin differs between the threads of a block}}
      %s = tile.stage %x[%r, %t] : memref<4x8xf32> -> memref<8xf32, "shared">
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block, %t = 8 : thread) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      // expected-error@+1 {{needs at least one axis to combine over}}
      %s = tile.combine add %v over() : f32
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block, %t = 8 : thread) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      // expected-error@+1 {{combines over thread axes of the enclosing launch only}}
      %s = tile.combine add %v over(%r) : f32
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block, %t = 8 : thread) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      // expected-error@+1 {{any does not fold values of f32}}
      %s = tile.combine any %v over(%t) : f32
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block, %t = 8 : thread) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      // expected-error@+1 {{folds along a thread axis of the enclosing launch only}}
      %s = tile.prefix add %v over(%r) : f32
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%v: f32, %i: index) {
  // expected-error@+1 {{'tile.combine' expects ancestor op 'tile.launch'}}
  %s = tile.combine add %v over(%i) : f32
  func.return
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      // expected-error@+1 {{pad must be positive, got 0}}
      %s = tile.stage %x[%r, 0] pad 0 : memref<4x8xf32> -> memref<8xf32, "shared">
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      loop.for %k = 0 to 2 {
        // expected-error@+1 {{2 to 8 buffers take turns, not 1}}
        %s = tile.stage %x[%r, 0] buffers 1 : memref<4x8xf32> -> memref<8xf32, "shared">
      }
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      loop.for %k = 0 to 2 {
        // expected-error@+1 {{2 to 8 buffers take turns, not 9}}
        %s = tile.stage %x[%r, 0] buffers 9 : memref<4x8xf32> -> memref<8xf32, "shared">
      }
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      // expected-error@+1 {{buffers take turns in a loop; the copy stands in none}}
      %s = tile.stage %x[%r, 0] buffers 2 : memref<4x8xf32> -> memref<8xf32, "shared">
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      // expected-error@+1 {{the copy engine leaves no room between rows; pad must be absent}}
      %s = tile.stage %x[%r, 0] pad 4 via tma : memref<4x8xf32> -> memref<8xf32, "shared">
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      // expected-error@+1 {{swizzle is 32, 64 or 128 bytes, not 16}}
      %s = tile.stage %x[%r, 0] via tma swizzle 16 : memref<4x8xf32> -> memref<8xf32, "shared">
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      // expected-error@+1 {{only what goes by tma can be swizzled}}
      %s = tile.stage %x[%r, 0] via cp_async swizzle 32 : memref<4x8xf32> -> memref<8xf32, "shared">
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    // expected-error@+1 {{`transport` must be one of sync, cp_async, tma, got "pigeon"}}
    tile.launch (%r = 4 : block) schedule(#tile.schedule<transport = pigeon>) {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block) {
      // expected-error@+1 {{must be rows by positions in memory space "shared"}}
      %p = tile.pack (%i = 8, %k = 8) : memref<8x8xf32> {
        %v = loop.load %x[%r, %i] : memref<4x8xf32>
      tile.yield %v : f32
      }
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block) {
      // expected-error@+1 {{pad must be positive, got 0}}
      %p = tile.pack (%i = 8, %k = 8) pad 0 : memref<8x8xf32, "shared"> {
        %v = loop.load %x[%r, %i] : memref<4x8xf32>
      tile.yield %v : f32
      }
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block) {
      // expected-error@+1 {{panels of 3 do not make up 8 rows unpadded}}
      %p = tile.pack (%i = 8, %k = 8) panels 3 : memref<8x8xf32, "shared"> {
        %v = loop.load %x[%r, %i] : memref<4x8xf32>
      tile.yield %v : f32
      }
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block) {
      // expected-error@+1 {{panels of 4 do not make up 8 rows unpadded}}
      %p = tile.pack (%i = 8, %k = 8) panels 4 pad 1 : memref<8x8xf32, "shared"> {
        %v = loop.load %x[%r, %i] : memref<4x8xf32>
      tile.yield %v : f32
      }
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block) {
      // expected-error@+1 {{what is read in place has no pad}}
      %p = tile.pack (%i = 8, %k = 8) pad 1 in_place : memref<8x8xf32, "shared"> {
        %v = loop.load %x[%r, %i] : memref<4x8xf32>
        %n = arith.negf %v : f32
        tile.yield %n : f32
      }
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block) {
      // expected-error@+1 {{rows in phases have no panels}}
      %p = tile.pack (%i = 8, %k = 8) panels 4 phases 2 : memref<8x8xf32, "shared"> {
        %v = loop.load %x[%r, %i] : memref<4x8xf32>
        tile.yield %v : f32
      }
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block) {
      // expected-error@+1 {{phases must be positive, got 0}}
      %p = tile.pack (%i = 8, %k = 8) phases 0 : memref<8x8xf32, "shared"> {
        %v = loop.load %x[%r, %i] : memref<4x8xf32>
        tile.yield %v : f32
      }
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block) {
      // expected-error@+1 {{what is read in place must be an element that the body loads}}
      %p = tile.pack (%i = 8, %k = 8) in_place : memref<8x8xf32, "shared"> {
        %v = loop.load %x[%r, %i] : memref<4x8xf32>
        %n = arith.negf %v : f32
        tile.yield %n : f32
      }
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block) {
      // expected-error@+1 {{expected a memref of the counters' extents}}
      %p = tile.pack (%i = 8, %k = 8) : memref<8x4xf32, "shared"> {
        %v = loop.load %x[%r, %i] : memref<4x8xf32>
      tile.yield %v : f32
      }
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block) {
      // expected-error@+1 {{the body must yield one f32}}
      %p = tile.pack (%i = 8, %k = 8) : memref<8x8xf32, "shared"> {
        %v = arith.constant 1 : i32
      tile.yield %v : i32
      }
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block) {
      // expected-error@+1 {{the body takes two counters and ends with tile.yield}}
      %p = tile.pack (%i = 8, %k = 8) : memref<8x8xf32, "shared"> {
        llvm.unreachable
      }
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    // expected-error@+1 {{stands in no tile.launch}}
    %p = tile.pack (%i = 4, %k = 8) : memref<4x8xf32, "shared"> {
      %v = loop.load %x[%i, %k] : memref<4x8xf32>
      tile.yield %v : f32
    }
    loop.for %r = 0 to 4 {
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block) {
      // expected-error@+1 {{the body counts rows and positions with an index each}}
      %p = "tile.pack"() ({
      ^bb0(%i: i64, %k: i64):
        %v = loop.load %x[%r, 0] : memref<4x8xf32>
        tile.yield %v : f32
      }) : () -> memref<8x8xf32, "shared">
      %v = loop.load %x[%r, 0] : memref<4x8xf32>
      loop.store %v, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<32xbf16>) -> tensor<32xf32> {
  %y = loop.kernel @k(%x) : (tensor<32xbf16>) -> tensor<32xf32> {
  ^bb0(%x: memref<32xbf16>, %y: memref<32xf32>):
    tile.launch (%r = 32 : thread) {
      %v = loop.load %x[%r] : memref<32xbf16>
      // expected-error@+1 {{no instruction multiplies 2 elements of rows by 4 of a column, of bf16, in each thread}}
      %a, %b, %c, %d = tile.mma (%v, %v) by (%v, %v, %v, %v) : bf16
      loop.store %a, %y[%r] : memref<32xf32>
    }
  }
  func.return %y : tensor<32xf32>
}

// -----

func.func @main(%x: tensor<32xf32>) -> tensor<32xf32> {
  %y = loop.kernel @k(%x) : (tensor<32xf32>) -> tensor<32xf32> {
  ^bb0(%x: memref<32xf32>, %y: memref<32xf32>):
    tile.launch (%r = 32 : thread) {
      %v = loop.load %x[%r] : memref<32xf32>
      // expected-error@+1 {{no instruction multiplies 8 elements of rows by 4 of a column, of f32, in each thread}}
      %a, %b, %c, %d = tile.mma (%v, %v, %v, %v, %v, %v, %v, %v) by (%v, %v, %v, %v) : f32
      loop.store %a, %y[%r] : memref<32xf32>
    }
  }
  func.return %y : tensor<32xf32>
}

// -----

func.func @main(%x: tensor<64x64xbf16>) -> tensor<64x8xf32> {
  %y = loop.kernel @k(%x) : (tensor<64x64xbf16>) -> tensor<64x8xf32> {
  ^bb0(%x: memref<64x64xbf16>, %y: memref<64x8xf32>):
    tile.launch (%t = 32 : thread, %l = 4 : thread) {
      %xs = tile.stage %x[0, 0] via tma swizzle 128 : memref<64x64xbf16> -> memref<64x32xbf16, "shared">
      %ws = tile.stage %x[0, 0] via tma swizzle 128 : memref<64x64xbf16> -> memref<8x64xbf16, "shared">
      // expected-error@+1 {{rows of a slab have 128 bytes, not those of memref<64x32xbf16, "shared">}}
      %a, %b, %c, %d = tile.wgmma %xs by %ws to 4 : memref<64x32xbf16, "shared"> by memref<8x64xbf16, "shared">
      loop.store %a, %y[%t, %l] : memref<64x8xf32>
    }
  }
  func.return %y : tensor<64x8xf32>
}

// -----

func.func @main(%x: tensor<64x64xbf16>) -> tensor<64x8xf32> {
  %y = loop.kernel @k(%x) : (tensor<64x64xbf16>) -> tensor<64x8xf32> {
  ^bb0(%x: memref<64x64xbf16>, %y: memref<64x8xf32>):
    tile.launch (%t = 32 : thread, %l = 4 : thread) {
      %xs = tile.stage %x[0, 0] via tma swizzle 128 : memref<64x64xbf16> -> memref<32x64xbf16, "shared">
      %ws = tile.stage %x[0, 0] via tma swizzle 128 : memref<64x64xbf16> -> memref<8x64xbf16, "shared">
      // expected-error@+1 {{multiplies 64 rows at once, and 32 are not that often}}
      %a, %b, %c, %d = tile.wgmma %xs by %ws to 4 : memref<32x64xbf16, "shared"> by memref<8x64xbf16, "shared">
      loop.store %a, %y[%t, %l] : memref<64x8xf32>
    }
  }
  func.return %y : tensor<64x8xf32>
}

// -----

func.func @main(%x: tensor<64x64xbf16>) -> tensor<64x8xf32> {
  %y = loop.kernel @k(%x) : (tensor<64x64xbf16>) -> tensor<64x8xf32> {
  ^bb0(%x: memref<64x64xbf16>, %y: memref<64x8xf32>):
    tile.launch (%t = 32 : thread, %l = 4 : thread) {
      %xs = tile.stage %x[0, 0] via tma swizzle 128 : memref<64x64xbf16> -> memref<64x64xbf16, "shared">
      %ws = tile.stage %x[0, 0] via tma swizzle 128 : memref<64x64xbf16> -> memref<12x64xbf16, "shared">
      // expected-error@+1 {{multiplies 8 to 256 columns, a multiple of 8, not 12}}
      %a, %b, %c, %d = tile.wgmma %xs by %ws to 4 : memref<64x64xbf16, "shared"> by memref<12x64xbf16, "shared">
      loop.store %a, %y[%t, %l] : memref<64x8xf32>
    }
  }
  func.return %y : tensor<64x8xf32>
}

// -----

func.func @main(%x: tensor<64x64xbf16>) -> tensor<64x8xf32> {
  %y = loop.kernel @k(%x) : (tensor<64x64xbf16>) -> tensor<64x8xf32> {
  ^bb0(%x: memref<64x64xbf16>, %y: memref<64x8xf32>):
    tile.launch (%t = 32 : thread, %l = 4 : thread) {
      %xs = tile.stage %x[0, 0] via tma swizzle 128 : memref<64x64xbf16> -> memref<64x64xbf16, "shared">
      %ws = tile.stage %x[0, 0] via tma swizzle 128 : memref<64x64xbf16> -> memref<64xbf16, "shared">
      // expected-error@+1 {{multiplies slabs of rows, got memref<64xbf16, "shared">}}
      %a, %b, %c, %d = tile.wgmma %xs by %ws to 4 : memref<64x64xbf16, "shared"> by memref<64xbf16, "shared">
      loop.store %a, %y[%t, %l] : memref<64x8xf32>
    }
  }
  func.return %y : tensor<64x8xf32>
}

// -----

func.func @main(%x: tensor<64x64xbf16>) -> tensor<64x8xf32> {
  %y = loop.kernel @k(%x) : (tensor<64x64xbf16>) -> tensor<64x8xf32> {
  ^bb0(%x: memref<64x64xbf16>, %y: memref<64x8xf32>):
    tile.launch (%t = 32 : thread, %l = 4 : thread) {
      %h = loop.load %x[0, 0] : memref<64x64xbf16>
      %ws = tile.stage %x[0, 0] via tma swizzle 128 : memref<64x64xbf16> -> memref<8x64xbf16, "shared">
      // expected-error@+1 {{of 64 positions a thread holds 32 elements, not 16}}
      %a, %b, %c, %d = tile.wgmma (%h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h) by %ws to 4 : bf16 by memref<8x64xbf16, "shared">
      loop.store %a, %y[%t, %l] : memref<64x8xf32>
    }
  }
  func.return %y : tensor<64x8xf32>
}

// -----

func.func @main(%x: tensor<64x64xbf16>) -> tensor<64x8xf32> {
  %y = loop.kernel @k(%x) : (tensor<64x64xbf16>) -> tensor<64x8xf32> {
  ^bb0(%x: memref<64x64xbf16>, %y: memref<64x8xf32>):
    tile.launch (%t = 32 : thread, %l = 4 : thread) {
      %h = loop.load %x[0, 0] : memref<64x64xbf16>
      %ws = tile.stage %x[0, 0] via tma swizzle 128 : memref<64x64xbf16> -> memref<24x64xbf16, "shared">
      // expected-error@+1 {{multiplies 16 positions at once, and 24 are not that often}}
      %a:32 = tile.wgmma (%h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h) by %ws transposed to 32 : bf16 by memref<24x64xbf16, "shared">
      loop.store %a#0, %y[%t, %l] : memref<64x8xf32>
    }
  }
  func.return %y : tensor<64x8xf32>
}

// -----

func.func @main(%x: tensor<64x64xbf16>) -> tensor<64x8xf32> {
  %y = loop.kernel @k(%x) : (tensor<64x64xbf16>) -> tensor<64x8xf32> {
  ^bb0(%x: memref<64x64xbf16>, %y: memref<64x8xf32>):
    tile.launch (%t = 32 : thread, %l = 4 : thread) {
      %xs = tile.stage %x[0, 0] via tma swizzle 128 : memref<64x64xbf16> -> memref<64x64xbf16, "shared">
      %ws = tile.stage %x[0, 0] via tma swizzle 128 : memref<64x64xbf16> -> memref<32x64xbf16, "shared">
      // expected-error@+1 {{multiplies 64 positions of rows by 32 of columns}}
      %a:32 = tile.wgmma %xs by %ws transposed to 32 : memref<64x64xbf16, "shared"> by memref<32x64xbf16, "shared">
      loop.store %a#0, %y[%t, %l] : memref<64x8xf32>
    }
  }
  func.return %y : tensor<64x8xf32>
}

// -----

func.func @main(%x: tensor<64x64xbf16>) -> tensor<64x8xf32> {
  %y = loop.kernel @k(%x) : (tensor<64x64xbf16>) -> tensor<64x8xf32> {
  ^bb0(%x: memref<64x64xbf16>, %y: memref<64x8xf32>):
    tile.launch (%t = 32 : thread, %l = 4 : thread) {
      %h = arith.constant 0.0 : f16
      %ws = tile.stage %x[0, 0] via tma swizzle 128 : memref<64x64xbf16> -> memref<8x64xbf16, "shared">
      // expected-error@+1 {{multiplies f16 by bf16}}
      %a, %b, %c, %d = tile.wgmma (%h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h) by %ws to 4 : f16 by memref<8x64xbf16, "shared">
      loop.store %a, %y[%t, %l] : memref<64x8xf32>
    }
  }
  func.return %y : tensor<64x8xf32>
}

// -----

func.func @main(%x: tensor<64x64xbf16>) -> tensor<4xbf16> {
  %y = loop.kernel @k(%x) : (tensor<64x64xbf16>) -> tensor<4xbf16> {
  ^bb0(%x: memref<64x64xbf16>, %y: memref<4xbf16>):
    // expected-error@+1 {{one axis may be of clusters, behind those of blocks}}
    tile.launch (%c = 2 : cluster, %r = 4 : block) {
      %v = loop.load %x[%r, 0] : memref<64x64xbf16>
      loop.store %v, %y[%r] : memref<4xbf16>
    }
  }
  func.return %y : tensor<4xbf16>
}

// -----

func.func @main(%x: tensor<64x64xbf16>) -> tensor<4xbf16> {
  %y = loop.kernel @k(%x) : (tensor<64x64xbf16>) -> tensor<4xbf16> {
  ^bb0(%x: memref<64x64xbf16>, %y: memref<4xbf16>):
    // expected-error@+1 {{one axis may be of clusters, behind those of blocks}}
    tile.launch (%c = 2 : cluster, %r = 4 : cluster) {
      %v = loop.load %x[%r, 0] : memref<64x64xbf16>
      loop.store %v, %y[%r] : memref<4xbf16>
    }
  }
  func.return %y : tensor<4xbf16>
}

// -----

func.func @main(%x: tensor<64x64xbf16>) -> tensor<4xbf16> {
  %y = loop.kernel @k(%x) : (tensor<64x64xbf16>) -> tensor<4xbf16> {
  ^bb0(%x: memref<64x64xbf16>, %y: memref<4xbf16>):
    // expected-error@+1 {{a cluster has 1 to 8 blocks, not 9}}
    tile.launch (%r = 4 : block, %c = 9 : cluster) {
      %v = loop.load %x[%r, 0] : memref<64x64xbf16>
      loop.store %v, %y[%r] : memref<4xbf16>
    }
  }
  func.return %y : tensor<4xbf16>
}

// -----

func.func @main(%x: tensor<64x64xbf16>) -> tensor<4xbf16> {
  %y = loop.kernel @k(%x) : (tensor<64x64xbf16>) -> tensor<4xbf16> {
  ^bb0(%x: memref<64x64xbf16>, %y: memref<4xbf16>):
    tile.launch (%r = 2 : block, %c = 2 : cluster) {
      // expected-error@+1 {{what is multicast is the same for all blocks of a cluster}}
      %s = tile.stage %x[%c * 8, 0] via tma swizzle 128 multicast 2 : memref<64x64xbf16> -> memref<16x64xbf16, "shared">
      %v = loop.load %x[%r, 0] : memref<64x64xbf16>
      loop.store %v, %y[%r] : memref<4xbf16>
    }
  }
  func.return %y : tensor<4xbf16>
}

// -----

func.func @main(%x: tensor<64x64xbf16>) -> tensor<4xbf16> {
  %y = loop.kernel @k(%x) : (tensor<64x64xbf16>) -> tensor<4xbf16> {
  ^bb0(%x: memref<64x64xbf16>, %y: memref<4xbf16>):
    tile.launch (%r = 2 : block, %c = 2 : cluster) {
      // expected-error@+1 {{is multicast to 4 blocks of clusters of 2}}
      %s = tile.stage %x[0, 0] via tma swizzle 128 multicast 4 : memref<64x64xbf16> -> memref<16x64xbf16, "shared">
      %v = loop.load %x[%r, 0] : memref<64x64xbf16>
      loop.store %v, %y[%r] : memref<4xbf16>
    }
  }
  func.return %y : tensor<4xbf16>
}

// -----

func.func @main(%x: tensor<64x64xbf16>) -> tensor<4xbf16> {
  %y = loop.kernel @k(%x) : (tensor<64x64xbf16>) -> tensor<4xbf16> {
  ^bb0(%x: memref<64x64xbf16>, %y: memref<4xbf16>):
    tile.launch (%r = 2 : block, %c = 2 : cluster) {
      // expected-error@+1 {{2 blocks of a cluster cannot share 15 rows evenly}}
      %s = tile.stage %x[0, 0] via tma multicast 2 : memref<64x64xbf16> -> memref<15x64xbf16, "shared">
      %v = loop.load %x[%r, 0] : memref<64x64xbf16>
      loop.store %v, %y[%r] : memref<4xbf16>
    }
  }
  func.return %y : tensor<4xbf16>
}

// -----

func.func @main(%x: tensor<64x64xbf16>) -> tensor<4xbf16> {
  %y = loop.kernel @k(%x) : (tensor<64x64xbf16>) -> tensor<4xbf16> {
  ^bb0(%x: memref<64x64xbf16>, %y: memref<4xbf16>):
    tile.launch (%r = 2 : block, %c = 2 : cluster) {
      // expected-error@+1 {{only what goes by tma can be multicast}}
      %s = tile.stage %x[0, 0] via cp_async multicast 2 : memref<64x64xbf16> -> memref<16x64xbf16, "shared">
      %v = loop.load %x[%r, 0] : memref<64x64xbf16>
      loop.store %v, %y[%r] : memref<4xbf16>
    }
  }
  func.return %y : tensor<4xbf16>
}

// -----

func.func @main(%x: tensor<64x64xbf16>) -> tensor<64x8xf32> {
  %y = loop.kernel @k(%x) : (tensor<64x64xbf16>) -> tensor<64x8xf32> {
  ^bb0(%x: memref<64x64xbf16>, %y: memref<64x8xf32>):
    tile.launch (%t = 32 : thread, %l = 4 : thread) {
      %xs = tile.stage %x[0, 0] via tma swizzle 128 : memref<64x64xbf16> -> memref<64x64xbf16, "shared">
      %ws = tile.stage %x[0, 0] via tma swizzle 128 : memref<64x64xbf16> -> memref<64x96xbf16, "shared">
      // expected-error@+1 {{multiplies panels of 64 columns, got memref<64x96xbf16, "shared">}}
      %a:48 = tile.wgmma %xs by %ws transposed to 48 : memref<64x64xbf16, "shared"> by memref<64x96xbf16, "shared">
      loop.store %a#0, %y[%t, %l] : memref<64x8xf32>
    }
  }
  func.return %y : tensor<64x8xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    tile.launch (%i = 4 : block) {
      // expected-error@+1 {{a launch cannot stand in another one}}
      tile.launch (%j = 2 : thread) {
      }
      %v = loop.load %x[%i] : memref<4xf32>
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4x8xf32>):
    // expected-error@+1 {{schedule says that `n` is axis 2 of 2, counted from 0}}
    tile.launch (%r = 4 : thread, %c = 8 : thread) schedule(#tile.schedule<m = 0, n = 2>) {
      %v = loop.load %x[%r, %c] : memref<4x8xf32>
      loop.store %v, %y[%r, %c] : memref<4x8xf32>
    }
  }
  func.return %y : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4x8xf32>):
    // expected-error@+1 {{`width` must be 128, 256 or 512, got 4}}
    tile.launch (%r = 4 : thread, %c = 8 : thread) schedule(#tile.schedule<width = 4>) {
      %v = loop.load %x[%r, %c] : memref<4x8xf32>
      loop.store %v, %y[%r, %c] : memref<4x8xf32>
    }
  }
  func.return %y : tensor<4x8xf32>
}
