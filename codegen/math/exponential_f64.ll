; e**x, 2**x and e**x - 1 of f64, within 2 units in the last place for every argument.
;
; `contract` permits a multiply-add of a product and a sum that follows it; a difference never is one.

declare double @llvm.fabs.f64(double)
declare double @llvm.fma.f64(double, double, double)
declare double @llvm.ldexp.f64.i32(double, i32)

; e**r - 1 for |r| <= ln 2 / 2: r + r**2 q(r), q as accurate as e**r needs it.
; Coefficients 1 / k!, the Taylor series.
define internal double @deplo_exp_reduced_f64(double %r) alwaysinline {
  %q.10 = call double @llvm.fma.f64(double 1.6059043836821613e-10, double %r, double 2.08767569878681e-09)
  %q.9 = call double @llvm.fma.f64(double %q.10, double %r, double 2.505210838544172e-08)
  %q.8 = call double @llvm.fma.f64(double %q.9, double %r, double 2.755731922398589e-07)
  %q.7 = call double @llvm.fma.f64(double %q.8, double %r, double 2.7557319223985893e-06)
  %q.6 = call double @llvm.fma.f64(double %q.7, double %r, double 2.48015873015873e-05)
  %q.5 = call double @llvm.fma.f64(double %q.6, double %r, double 0.0001984126984126984)
  %q.4 = call double @llvm.fma.f64(double %q.5, double %r, double 0.001388888888888889)
  %q.3 = call double @llvm.fma.f64(double %q.4, double %r, double 0.008333333333333333)
  %q.2 = call double @llvm.fma.f64(double %q.3, double %r, double 0.041666666666666664)
  %q.1 = call double @llvm.fma.f64(double %q.2, double %r, double 0.16666666666666666)
  %q = call double @llvm.fma.f64(double %q.1, double %r, double 0.5)
  %r.squared = fmul contract double %r, %r
  %result = call double @llvm.fma.f64(double %q, double %r.squared, double %r)
  ret double %result
}

; e**x: 2**n * e**r with n the integer nearest to x / ln 2 and r = x - n ln 2, in two parts of ln 2.
; 2**n is a product of two powers, because n may be twice as large as a float's exponent: the product with the
; first is exact, that with the second is rounded, to a subnormal number or to infinity, too.
define internal double @deplo_exp_f64(double %x) alwaysinline {
  ; Beyond these bounds the result is 0 or infinite. NaN stays.
  %is_low = fcmp olt double %x, -1418.0
  %raised = select i1 %is_low, double -1418.0, double %x
  %is_high = fcmp ogt double %raised, 710.0
  %held = select i1 %is_high, double 710.0, double %raised
  ; n + 2046 in the low bits of the sum: adding 1.5 * 2**52 rounds to an integer.
  %shifted = call double @llvm.fma.f64(double %held, double 1.4426950408889634, double 6755399441057790.0)
  %n = fsub double %shifted, 6755399441057790.0
  %r.high = call double @llvm.fma.f64(double %n, double -0.6931471805598903, double %held)
  %r = call double @llvm.fma.f64(double %n, double -5.497923018708371e-14, double %r.high)
  %bits = bitcast double %shifted to i64
  %half = lshr i64 %bits, 1
  %other = sub i64 %bits, %half
  %half.placed = shl i64 %half, 52
  %other.placed = shl i64 %other, 52
  %power.half = bitcast i64 %half.placed to double
  %power.other = bitcast i64 %other.placed to double
  %grown = call double @deplo_exp_reduced_f64(double %r)
  %scaled = call double @llvm.fma.f64(double %grown, double %power.half, double %power.half)
  %result = fmul contract double %scaled, %power.other
  ret double %result
}

; e**x for cores that multiply by a power of two in one fast instruction (x86 `vscalef`).
define internal double @deplo_exp_ldexp_f64(double %x) alwaysinline {
  %is_low = fcmp olt double %x, -1418.0
  %raised = select i1 %is_low, double -1418.0, double %x
  %is_high = fcmp ogt double %raised, 710.0
  %held = select i1 %is_high, double 710.0, double %raised
  %shifted = call double @llvm.fma.f64(double %held, double 1.4426950408889634, double 6755399441055744.0)
  %n = fsub double %shifted, 6755399441055744.0
  %r.high = call double @llvm.fma.f64(double %n, double -0.6931471805598903, double %held)
  %r = call double @llvm.fma.f64(double %n, double -5.497923018708371e-14, double %r.high)
  %grown = call double @deplo_exp_reduced_f64(double %r)
  %near = fadd contract double %grown, 1.0
  %shifted.bits = bitcast double %shifted to i64
  %n.wide = sub i64 %shifted.bits, 4843621399236968448  ; the bits of 1.5 * 2**52
  %n.narrow = trunc i64 %n.wide to i32
  %power = call double @llvm.ldexp.f64.i32(double %near, i32 %n.narrow)
  ret double %power
}

; e**x where 2**n is a normal number. Other arguments and NaN give any value.
define internal double @deplo_exp_moderate_f64(double %x) alwaysinline {
  %shifted = call double @llvm.fma.f64(double %x, double 1.4426950408889634, double 6755399441055744.0)
  %n = fsub double %shifted, 6755399441055744.0
  %r.high = call double @llvm.fma.f64(double %n, double -0.6931471805598903, double %x)
  %r = call double @llvm.fma.f64(double %n, double -5.497923018708371e-14, double %r.high)
  %grown = call double @deplo_exp_reduced_f64(double %r)
  %near = fadd contract double %grown, 1.0
  ; Add n to the exponent.
  %bits = bitcast double %near to i64
  %shifted.bits = bitcast double %shifted to i64
  %exponent = shl i64 %shifted.bits, 52
  %raised = add i64 %bits, %exponent
  %result = bitcast i64 %raised to double
  ret double %result
}

; e**x - 1: 2**n q + (2**n - 1) with q = e**r - 1.
; Halves are computed until the end, because the greatest 2**n is no float.
define internal double @deplo_expm1_f64(double %x) alwaysinline {
  %is_low = fcmp olt double %x, -38.0
  %raised = select i1 %is_low, double -38.0, double %x
  %is_high = fcmp ogt double %raised, 709.9
  %held = select i1 %is_high, double 709.9, double %raised
  %shifted = call double @llvm.fma.f64(double %held, double 1.4426950408889634, double 6755399441055744.0)
  %n = fsub double %shifted, 6755399441055744.0
  %r.high = call double @llvm.fma.f64(double %n, double -0.6931471805598903, double %held)
  %r = call double @llvm.fma.f64(double %n, double -5.497923018708371e-14, double %r.high)
  %shifted.bits = bitcast double %shifted to i64
  %exponent = shl i64 %shifted.bits, 52
  %half.bits = add i64 4602678819172646912, %exponent  ; the bits of 0.5
  %half = bitcast i64 %half.bits to double
  %grown = call double @deplo_exp_reduced_f64(double %r)
  %half.less = fsub double %half, 0.5
  %half.result = call double @llvm.fma.f64(double %half, double %grown, double %half.less)
  ; Below 2**-54 the result is x: halving would lose a bit of a subnormal number and
  ; the sign of 0.
  %size = call double @llvm.fabs.f64(double %x)
  %is_tiny = fcmp olt double %size, 5.551115123125783e-17
  %result = fadd contract double %half.result, %half.result
  %chosen = select i1 %is_tiny, double %x, double %result
  ret double %chosen
}

; 2**r for |r| <= 1/2.
; Coefficients (ln 2)**k / k!, the Taylor series.
define internal double @deplo_exp2_reduced_f64(double %r) alwaysinline {
  %result.12 = call double @llvm.fma.f64(double 1.3691488853904124e-12, double %r, double 2.5678435993488196e-11)
  %result.11 = call double @llvm.fma.f64(double %result.12, double %r, double 4.44553827187081e-10)
  %result.10 = call double @llvm.fma.f64(double %result.11, double %r, double 7.054911620801121e-09)
  %result.9 = call double @llvm.fma.f64(double %result.10, double %r, double 1.0178086009239696e-07)
  %result.8 = call double @llvm.fma.f64(double %result.9, double %r, double 1.3215486790144305e-06)
  %result.7 = call double @llvm.fma.f64(double %result.8, double %r, double 1.5252733804059838e-05)
  %result.6 = call double @llvm.fma.f64(double %result.7, double %r, double 0.00015403530393381606)
  %result.5 = call double @llvm.fma.f64(double %result.6, double %r, double 0.0013333558146428441)
  %result.4 = call double @llvm.fma.f64(double %result.5, double %r, double 0.009618129107628477)
  %result.3 = call double @llvm.fma.f64(double %result.4, double %r, double 0.055504108664821576)
  %result.2 = call double @llvm.fma.f64(double %result.3, double %r, double 0.2402265069591007)
  %result.1 = call double @llvm.fma.f64(double %result.2, double %r, double 0.6931471805599453)
  %result = call double @llvm.fma.f64(double %result.1, double %r, double 1.0)
  ret double %result
}

; 2**x: 2**n * 2**(x - n) with n the integer nearest to x; 2**n as in @deplo_exp_f64.
define internal double @deplo_exp2_f64(double %x) alwaysinline {
  %is_low = fcmp olt double %x, -2046.0
  %raised = select i1 %is_low, double -2046.0, double %x
  %is_high = fcmp ogt double %raised, 1025.0
  %held = select i1 %is_high, double 1025.0, double %raised
  %shifted = fadd contract double %held, 6755399441057790.0
  %n = fsub double %shifted, 6755399441057790.0
  %r = fsub double %held, %n
  %near = call double @deplo_exp2_reduced_f64(double %r)
  %bits = bitcast double %shifted to i64
  %half = lshr i64 %bits, 1
  %other = sub i64 %bits, %half
  %half.placed = shl i64 %half, 52
  %other.placed = shl i64 %other, 52
  %power.half = bitcast i64 %half.placed to double
  %power.other = bitcast i64 %other.placed to double
  %scaled = fmul contract double %near, %power.half
  %result = fmul contract double %scaled, %power.other
  ret double %result
}

; 2**x for cores that multiply by a power of two in one fast instruction.
define internal double @deplo_exp2_ldexp_f64(double %x) alwaysinline {
  %is_low = fcmp olt double %x, -2046.0
  %raised = select i1 %is_low, double -2046.0, double %x
  %is_high = fcmp ogt double %raised, 1025.0
  %held = select i1 %is_high, double 1025.0, double %raised
  %shifted = fadd contract double %held, 6755399441055744.0
  %n = fsub double %shifted, 6755399441055744.0
  %r = fsub double %held, %n
  %near = call double @deplo_exp2_reduced_f64(double %r)
  %shifted.bits = bitcast double %shifted to i64
  %n.wide = sub i64 %shifted.bits, 4843621399236968448  ; the bits of 1.5 * 2**52
  %n.narrow = trunc i64 %n.wide to i32
  %power = call double @llvm.ldexp.f64.i32(double %near, i32 %n.narrow)
  ret double %power
}
