// What each check of the loop dialect says.
// RUN: deplo-opt %s --split-input-file --verify-diagnostics

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      // expected-error@+1 {{2 indices into rank-1 memref<4xf32>}}
      %w = loop.load %x[%i, %i] : memref<4xf32>
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      // expected-error@+1 {{0 indices into rank-1 memref<4xf32>}}
      loop.store %v, %y[] : memref<4xf32>
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      // expected-error@+1 {{index over 2 dims does not match its 1 operands}}
      %w = "loop.load"(%x, %i) <{map = affine_map<(d0, d1) -> (d0)>}> : (memref<4xf32>, index) -> f32
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      // expected-error@+1 {{f64}}
      %w = "loop.load"(%x, %i) <{map = affine_map<(d0) -> (d0)>}> : (memref<4xf32>, index) -> f64
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      // expected-error@+1 {{expected one expression, got 2}}
      %w = "loop.index"(%i) <{map = affine_map<(d0) -> (d0, d0)>}> : (index) -> index
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      // expected-error@+1 {{needs at least one condition}}
      %w = "loop.test"(%i) <{set = affine_set<(d0) : ()>}> : (index) -> i1
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      // expected-error@+1 {{index over 2 dims does not match its 1 operands}}
      %w = "loop.test"(%i) <{set = affine_set<(d0, d1) : (d0 >= 0)>}> : (index) -> i1
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      // expected-error@+1 {{f32}}
      %w = loop.checked_index %v below 4 : f32
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      // expected-error@+1 {{operand is used with type i1, but has been previously used or defined with type f32}}
      loop.assert %v, "message"
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      // expected-error@+1 {{loops count from 0; put the offset into the index}}
      loop.for %k = 1 to 4 { }
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      // expected-error@+1 {{extent must not be negative, got -4}}
      loop.for %k = 0 to -4 { }
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      // expected-error@+1 {{property 'extent' expected in operation 'loop.for'}}
      "loop.for"() <{combiners = []}> ({
      ^bb0(%k: index):
        "loop.yield"() : () -> ()
      }) : () -> ()
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      // expected-error@+1 {{body must take exactly the loop counter, an index}}
      "loop.for"() <{extent = #sym.extent<4>, combiners = []}> ({
        "loop.yield"() : () -> ()
      }) : () -> ()
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      // expected-error@+1 {{1 combiners for 2 results}}
      %s, %t = loop.for %k = 0 to 4 reduce(add) -> f32, f32 {
        loop.yield %v, %v : f32, f32
      }
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      // expected-error@+1 {{any does not fold values of f32}}
      %s = loop.for %k = 0 to 4 reduce(any) -> f32 {
        loop.yield %v : f32
      }
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      // expected-error@+1 {{yields (f32) but gives results (f64)}}
      %s = loop.for %k = 0 to 4 reduce(add) -> f64 {
        loop.yield %v : f32
      }
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      // expected-error@+1 {{Expected `add`, `mul`}}
      %s = loop.for %k = 0 to 4 reduce(median) -> f32 {
        loop.yield %v : f32
      }
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{a kernel has at least one output}}
  "loop.kernel"(%x) <{sym_name = "k"}> ({
  ^bb0(%a: memref<4xf32>):
  }) : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>, %n: i32) -> tensor<4xf32> {
  // expected-error@+1 {{inputs are tensors, got i32}}
  %y = loop.kernel @k(%n) : (i32) -> tensor<4xf32> {
  ^bb0(%n: i32, %y: memref<4xf32>):
    %v = arith.constant 0.0 : f32
    loop.store %v, %y[0] : memref<4xf32>
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>, %n: i32) -> tensor<4xf32> {
  // expected-error@+1 {{body must take the inputs and the outputs: (memref<4xf32>, memref<4xf32>)}}
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<5xf32>):
    %v = arith.constant 0.0 : f32
    loop.store %v, %y[0] : memref<5xf32>
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>, %n: i32) -> tensor<4xf32> {
  // expected-error@+1 {{element type ui16 is not supported}}
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xui16> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xui16>):

  }
  func.return %x : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>, %n: i32) -> tensor<4xf32> {
  // expected-error@+1 {{output #0 is never stored}}
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):

  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>, %n: i32) -> tensor<4xf32> {
  // expected-error@+1 {{loads from an output; a kernel reads its inputs only}}
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %y[%i] : memref<4xf32>
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>, %n: i32) -> tensor<4xf32> {
  // expected-error@+1 {{stores to an input; a kernel writes its outputs only}}
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      loop.store %v, %x[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main() {
  // expected-error@+1 {{the array must be one row in memory space "registers", got memref<8xf32>}}
  %r = loop.registers : memref<8xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>, %s: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{accumulates in an output, which begins as an input}}
  %y = loop.kernel @k(%x, %s) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %s: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      loop.accumulate %v, %s[%i] onto %x : f32, memref<4xf32>
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main() {
  // expected-error@+1 {{the array must be one row in memory space "registers", got memref<2x4xf32, "registers">}}
  %r = loop.registers : memref<2x4xf32, "registers">
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>, %s: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{an output that is accumulated in, and the input that it begins as, have no other use}}
  %y = loop.kernel @k(%x, %s) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %s: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      loop.accumulate %v, %y[%i] onto %x : f32, memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main() {
  // expected-error@+1 {{129 elements; an array has 1 to 128}}
  %r = loop.registers : memref<129xf32, "registers">
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>, %s: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{an output that is accumulated in, and the input that it begins as, have no other use}}
  %y = loop.kernel @k(%x, %s) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %s: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      loop.accumulate %v, %y[%i] onto %s : f32, memref<4xf32>
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>, %s: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x, %s) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %s: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      %c = arith.constant 1 : i32
      // expected-error@+1 {{adds i32 to elements of f32}}
      loop.accumulate %c, %y[%i] onto %s : i32, memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%w: tensor<2x64x48xf32>) -> tensor<1xf32> {
  %y = loop.kernel @k(%w) : (tensor<2x64x48xf32>) -> tensor<1xf32> {
  ^bb0(%w: memref<2x64x48xf32>, %y: memref<1xf32>):
    // expected-error@+1 {{rows count along a dimension before the last, not 2 of 3}}
    %t = loop.transpose %w[0, 0, 0] along 2 : memref<2x64x48xf32> -> memref<16x16xf32>
    %v = loop.load %t[0, 0] : memref<16x16xf32>
    loop.store %v, %y[0] : memref<1xf32>
  }
  func.return %y : tensor<1xf32>
}

// -----

func.func @main(%w: tensor<2x64x48xf32>) -> tensor<1xf32> {
  %y = loop.kernel @k(%w) : (tensor<2x64x48xf32>) -> tensor<1xf32> {
  ^bb0(%w: memref<2x64x48xf32>, %y: memref<1xf32>):
    // expected-error@+1 {{the result is made of squares of 16, not (16, 17)}}
    %t = loop.transpose %w[0, 0, 0] along 1 : memref<2x64x48xf32> -> memref<16x17xf32>
    %v = loop.load %t[0, 0] : memref<16x17xf32>
    loop.store %v, %y[0] : memref<1xf32>
  }
  func.return %y : tensor<1xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      // expected-error@+1 {{what is weighted is folded by max, weight and any number of weights and means}}
      %r0, %r1 = loop.for %k = 0 to 4 reduce(max, mean) -> f32, f32 {
        loop.yield %v, %v : f32, f32
      }
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      // expected-error@+1 {{what is weighted is folded by max, weight and any number of weights and means}}
      %r0, %r1, %r2 = loop.for %k = 0 to 4 reduce(max, weight, add) -> f32, f32, f32 {
        loop.yield %v, %v, %v : f32, f32, f32
      }
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {
  %y = loop.kernel @k(%x) : (tensor<4xi32>) -> tensor<4xi32> {
  ^bb0(%x: memref<4xi32>, %y: memref<4xi32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xi32>
      // expected-error@+1 {{exponents, weights and means are all f32 or all f64}}
      %r0, %r1 = loop.for %k = 0 to 4 reduce(max, weight) -> i32, i32 {
        loop.yield %v, %v : i32, i32
      }
      loop.store %v, %y[%i] : memref<4xi32>
    }
  }
  func.return %y : tensor<4xi32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      // expected-error@+1 {{asks for what lies behind, -16 elements ahead}}
      loop.prefetch %x[%i] ahead -16 : memref<4xf32>
      %v = loop.load %x[%i] : memref<4xf32>
      loop.store %v, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}
