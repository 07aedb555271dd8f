; e**x, 2**x and e**x - 1 of f32, within 2 units in the last place for every argument.
;
; `contract` permits a multiply-add of a product and a sum that follows it; a difference never is one.

declare float @llvm.fabs.f32(float)
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.ldexp.f32.i32(float, i32)

; e**r - 1 for |r| <= ln 2 / 2: r + r**2 q(r), q as accurate as e**r needs it.
; Coefficients minimise the greatest error.
define internal float @deplo_exp_reduced_f32(float %r) alwaysinline {
  %q.3 = call float @llvm.fma.f32(float 0.0013818945735692978, float %r, float 0.008368703536689281)
  %q.2 = call float @llvm.fma.f32(float %q.3, float %r, float 0.04166828840970993)
  %q.1 = call float @llvm.fma.f32(float %q.2, float %r, float 0.1666652113199234)
  %q = call float @llvm.fma.f32(float %q.1, float %r, float 0.4999999403953552)
  %r.squared = fmul contract float %r, %r
  %result = call float @llvm.fma.f32(float %q, float %r.squared, float %r)
  ret float %result
}

; e**x: 2**n * e**r with n the integer nearest to x / ln 2 and r = x - n ln 2, in two parts of ln 2.
; 2**n is a product of two powers, because n may be twice as large as a float's exponent: the product with the
; first is exact, that with the second is rounded, to a subnormal number or to infinity, too.
define internal float @deplo_exp_f32(float %x) alwaysinline {
  ; Beyond these bounds the result is 0 or infinite. NaN stays.
  %is_low = fcmp olt float %x, -176.0
  %raised = select i1 %is_low, float -176.0, float %x
  %is_high = fcmp ogt float %raised, 89.0
  %held = select i1 %is_high, float 89.0, float %raised
  ; n + 254 in the low bits of the sum: adding 1.5 * 2**23 rounds to an integer.
  %shifted = call float @llvm.fma.f32(float %held, float 1.4426950216293335, float 12583166.0)
  %n = fsub float %shifted, 12583166.0
  %r.high = call float @llvm.fma.f32(float %n, float -0.693359375, float %held)
  %r = call float @llvm.fma.f32(float %n, float 0.00021219444170128554, float %r.high)
  %bits = bitcast float %shifted to i32
  %half = lshr i32 %bits, 1
  %other = sub i32 %bits, %half
  %half.placed = shl i32 %half, 23
  %other.placed = shl i32 %other, 23
  %power.half = bitcast i32 %half.placed to float
  %power.other = bitcast i32 %other.placed to float
  %grown = call float @deplo_exp_reduced_f32(float %r)
  %scaled = call float @llvm.fma.f32(float %grown, float %power.half, float %power.half)
  %result = fmul contract float %scaled, %power.other
  ret float %result
}

; e**x for cores that multiply by a power of two in one fast instruction (x86 `vscalef`).
define internal float @deplo_exp_ldexp_f32(float %x) alwaysinline {
  %is_low = fcmp olt float %x, -176.0
  %raised = select i1 %is_low, float -176.0, float %x
  %is_high = fcmp ogt float %raised, 89.0
  %held = select i1 %is_high, float 89.0, float %raised
  %shifted = call float @llvm.fma.f32(float %held, float 1.4426950216293335, float 12582912.0)
  %n = fsub float %shifted, 12582912.0
  %r.high = call float @llvm.fma.f32(float %n, float -0.693359375, float %held)
  %r = call float @llvm.fma.f32(float %n, float 0.00021219444170128554, float %r.high)
  %grown = call float @deplo_exp_reduced_f32(float %r)
  %near = fadd contract float %grown, 1.0
  %shifted.bits = bitcast float %shifted to i32
  %n.wide = sub i32 %shifted.bits, 1262485504  ; the bits of 1.5 * 2**23
  %power = call float @llvm.ldexp.f32.i32(float %near, i32 %n.wide)
  ret float %power
}

; e**x where 2**n is a normal number: -86 < x < 88. Other arguments and NaN give any value.
define internal float @deplo_exp_moderate_f32(float %x) alwaysinline {
  %shifted = call float @llvm.fma.f32(float %x, float 1.4426950216293335, float 12582912.0)
  %n = fsub float %shifted, 12582912.0
  %r.high = call float @llvm.fma.f32(float %n, float -0.693359375, float %x)
  %r = call float @llvm.fma.f32(float %n, float 0.00021219444170128554, float %r.high)
  %grown = call float @deplo_exp_reduced_f32(float %r)
  %near = fadd contract float %grown, 1.0
  ; Add n to the exponent.
  %bits = bitcast float %near to i32
  %shifted.bits = bitcast float %shifted to i32
  %exponent = shl i32 %shifted.bits, 23
  %raised = add i32 %bits, %exponent
  %result = bitcast i32 %raised to float
  ret float %result
}

; e**x for x <= 0. NaN stays, other arguments give any value.
; The power is too large by 2**24 until the end, so that it is a normal number or 0.
define internal float @deplo_exp_nonpositive_f32(float %x) alwaysinline {
  %is_low = fcmp olt float %x, -104.5999984741211
  %held = select i1 %is_low, float -104.5999984741211, float %x
  %shifted = call float @llvm.fma.f32(float %held, float 1.4426950216293335, float 12583063.0)
  %n = fsub float %shifted, 12583063.0
  %r.high = call float @llvm.fma.f32(float %n, float -0.693359375, float %held)
  %r = call float @llvm.fma.f32(float %n, float 0.00021219444170128554, float %r.high)
  %bits = bitcast float %shifted to i32
  %placed = shl i32 %bits, 23
  %power = bitcast i32 %placed to float
  %grown = call float @deplo_exp_reduced_f32(float %r)
  %greater = call float @llvm.fma.f32(float %grown, float %power, float %power)
  %result = fmul contract float %greater, 5.960464477539063e-08
  ret float %result
}

; e**x - 1: 2**n q + (2**n - 1) with q = e**r - 1.
; Halves are computed until the end, because the greatest 2**n is no float.
define internal float @deplo_expm1_f32(float %x) alwaysinline {
  %is_low = fcmp olt float %x, -20.0
  %raised = select i1 %is_low, float -20.0, float %x
  %is_high = fcmp ogt float %raised, 88.80000305175781
  %held = select i1 %is_high, float 88.80000305175781, float %raised
  %shifted = call float @llvm.fma.f32(float %held, float 1.4426950216293335, float 12582912.0)
  %n = fsub float %shifted, 12582912.0
  %r.high = call float @llvm.fma.f32(float %n, float -0.693359375, float %held)
  %r = call float @llvm.fma.f32(float %n, float 0.00021219444170128554, float %r.high)
  %shifted.bits = bitcast float %shifted to i32
  %exponent = shl i32 %shifted.bits, 23
  %half.bits = add i32 1056964608, %exponent  ; the bits of 0.5
  %half = bitcast i32 %half.bits to float
  ; Coefficients of Cephes (Moshier), as accurate as e**r - 1 needs it.
  %q.4 = call float @llvm.fma.f32(float 0.00019875691214110702, float %r, float 0.001398199936375022)
  %q.3 = call float @llvm.fma.f32(float %q.4, float %r, float 0.008333452045917511)
  %q.2 = call float @llvm.fma.f32(float %q.3, float %r, float 0.04166579619050026)
  %q.1 = call float @llvm.fma.f32(float %q.2, float %r, float 0.1666666567325592)
  %q = call float @llvm.fma.f32(float %q.1, float %r, float 0.5)
  %r.squared = fmul contract float %r, %r
  %grown = call float @llvm.fma.f32(float %q, float %r.squared, float %r)
  %half.less = fsub float %half, 0.5
  %half.result = call float @llvm.fma.f32(float %half, float %grown, float %half.less)
  ; Below 2**-25 the result is x: halving would lose a bit of a subnormal number and
  ; the sign of 0.
  %size = call float @llvm.fabs.f32(float %x)
  %is_tiny = fcmp olt float %size, 2.9802322387695312e-08
  %result = fadd contract float %half.result, %half.result
  %chosen = select i1 %is_tiny, float %x, float %result
  ret float %chosen
}

; 2**r for |r| <= 1/2.
; Coefficients of Cephes (Moshier).
define internal float @deplo_exp2_reduced_f32(float %r) alwaysinline {
  %result.5 = call float @llvm.fma.f32(float 0.00015353361959569156, float %r, float 0.0013398873852565885)
  %result.4 = call float @llvm.fma.f32(float %result.5, float %r, float 0.00961843691766262)
  %result.3 = call float @llvm.fma.f32(float %result.4, float %r, float 0.055503323674201965)
  %result.2 = call float @llvm.fma.f32(float %result.3, float %r, float 0.24022647738456726)
  %result.1 = call float @llvm.fma.f32(float %result.2, float %r, float 0.6931471824645996)
  %result = call float @llvm.fma.f32(float %result.1, float %r, float 1.0)
  ret float %result
}

; 2**x: 2**n * 2**(x - n) with n the integer nearest to x; 2**n as in @deplo_exp_f32.
define internal float @deplo_exp2_f32(float %x) alwaysinline {
  %is_low = fcmp olt float %x, -254.0
  %raised = select i1 %is_low, float -254.0, float %x
  %is_high = fcmp ogt float %raised, 129.0
  %held = select i1 %is_high, float 129.0, float %raised
  %shifted = fadd contract float %held, 12583166.0
  %n = fsub float %shifted, 12583166.0
  %r = fsub float %held, %n
  %near = call float @deplo_exp2_reduced_f32(float %r)
  %bits = bitcast float %shifted to i32
  %half = lshr i32 %bits, 1
  %other = sub i32 %bits, %half
  %half.placed = shl i32 %half, 23
  %other.placed = shl i32 %other, 23
  %power.half = bitcast i32 %half.placed to float
  %power.other = bitcast i32 %other.placed to float
  %scaled = fmul contract float %near, %power.half
  %result = fmul contract float %scaled, %power.other
  ret float %result
}

; 2**x for cores that multiply by a power of two in one fast instruction.
define internal float @deplo_exp2_ldexp_f32(float %x) alwaysinline {
  %is_low = fcmp olt float %x, -254.0
  %raised = select i1 %is_low, float -254.0, float %x
  %is_high = fcmp ogt float %raised, 129.0
  %held = select i1 %is_high, float 129.0, float %raised
  %shifted = fadd contract float %held, 12582912.0
  %n = fsub float %shifted, 12582912.0
  %r = fsub float %held, %n
  %near = call float @deplo_exp2_reduced_f32(float %r)
  %shifted.bits = bitcast float %shifted to i32
  %n.wide = sub i32 %shifted.bits, 1262485504  ; the bits of 1.5 * 2**23
  %power = call float @llvm.ldexp.f32.i32(float %near, i32 %n.wide)
  ret float %power
}
