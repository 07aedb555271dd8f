; sin and cos of f32 and f64, tan of f32, of arguments that are not large, within 2 units in the last place.
;
; Infinities and NaN give NaN. Where an argument is large, the result is any value.

declare float @llvm.fabs.f32(float)
declare double @llvm.fabs.f64(double)
declare float @llvm.fma.f32(float, float, float)
declare double @llvm.fma.f64(double, double, double)

; Whether a finite x is too large for @deplo_sin_small_f32 and its kin: above 65536.
define internal i1 @deplo_is_large_angle_f32(float %x) alwaysinline {
  %size = call float @llvm.fabs.f32(float %x)
  %is_large = fcmp ogt float %size, 65536.0
  %is_finite = fcmp olt float %size, 0x7FF0000000000000
  %result = and i1 %is_large, %is_finite
  ret i1 %result
}

; r = x - n pi / 2 and the bits of n in the lowest ones, with n the integer nearest to x / (pi / 2).
; The parts of pi / 2 are positive, so that -0 stays.
define internal { float, i32 } @deplo_angle_parts_f32(float %x) alwaysinline {
  ; Adding 1.5 * 2**23 rounds to an integer.
  %shifted = call float @llvm.fma.f32(float %x, float 0.6366197466850281, float 12582912.0)  ; 2 / pi
  %n = fsub float %shifted, 12582912.0
  %r.high = call float @llvm.fma.f32(float %n, float -1.570796012878418, float %x)
  %r.middle = call float @llvm.fma.f32(float %n, float -3.1391647326017846e-07, float %r.high)
  %r = call float @llvm.fma.f32(float %n, float -5.390302529957765e-15, float %r.middle)
  %bits = bitcast float %shifted to i32
  %result.0 = insertvalue { float, i32 } poison, float %r, 0
  %result = insertvalue { float, i32 } %result.0, i32 %bits, 1
  ret { float, i32 } %result
}

; sin(x + quadrant * pi / 2) for |x| <= pi / 4; the quadrant is in the two lowest bits.
; Coefficients and the parts of pi / 2 are those of Norbert Juffa's sinf and cosf.
define internal float @deplo_sin_in_quadrant_f32(float %x, i32 %quadrant) alwaysinline {
  %squared = fmul contract float %x, %x
  %cube = call float @llvm.fma.f32(float %x, float %squared, float 0.0)  ; 0 for -0, so that the sine below is -0
  ; (sin x - x) / x**3 in x**2
  %s.2 = call float @llvm.fma.f32(float 2.8656795620918274e-06, float %squared, float -0.00019855992286466062)
  %s.1 = call float @llvm.fma.f32(float %s.2, float %squared, float 0.008333385922014713)
  %s = call float @llvm.fma.f32(float %s.1, float %squared, float -0.1666666716337204)
  %sine = call float @llvm.fma.f32(float %s, float %cube, float %x)
  ; cos x in x**2
  %cosine.3 = call float @llvm.fma.f32(float 2.446770668029785e-05, float %squared, float -0.0013887729728594422)
  %cosine.2 = call float @llvm.fma.f32(float %cosine.3, float %squared, float 0.041666656732559204)
  %cosine.1 = call float @llvm.fma.f32(float %cosine.2, float %squared, float -0.5)
  %cosine = call float @llvm.fma.f32(float %cosine.1, float %squared, float 1.0)
  %half = and i32 %quadrant, 2
  %sign = shl i32 %half, 30
  %last = and i32 %quadrant, 1
  %is_odd = icmp ne i32 %last, 0
  %value = select i1 %is_odd, float %cosine, float %sine
  %bits = bitcast float %value to i32
  %signed = xor i32 %bits, %sign
  %result = bitcast i32 %signed to float
  ret float %result
}

; sin x for |x| <= 65536.
define internal float @deplo_sin_small_f32(float %x) alwaysinline {
  %parts = call { float, i32 } @deplo_angle_parts_f32(float %x)
  %r = extractvalue { float, i32 } %parts, 0
  %quadrant = extractvalue { float, i32 } %parts, 1
  %result = call float @deplo_sin_in_quadrant_f32(float %r, i32 %quadrant)
  ret float %result
}

; cos x for |x| <= 65536: a sine one quadrant further.
define internal float @deplo_cos_small_f32(float %x) alwaysinline {
  %parts = call { float, i32 } @deplo_angle_parts_f32(float %x)
  %r = extractvalue { float, i32 } %parts, 0
  %quadrant = extractvalue { float, i32 } %parts, 1
  %next = add i32 %quadrant, 1
  %result = call float @deplo_sin_in_quadrant_f32(float %r, i32 %next)
  ret float %result
}

; tan x for |x| <= 65536: tan r, or -1 / tan r if n is odd, with r = x - n pi / 2.
; In f64, because rounding r, tan r and the quotient to f32 would be three units off.
define internal float @deplo_tan_small_f32(float %x) alwaysinline {
  %wide = fpext float %x to double
  %shifted = call double @llvm.fma.f64(double %wide, double 0.6366197723675814, double 6755399441055744.0)  ; 2 / pi
  %n = fsub double %shifted, 6755399441055744.0
  %r.high = call double @llvm.fma.f64(double %n, double -1.5707963267948966, double %wide)
  %r = call double @llvm.fma.f64(double %n, double -6.123233995736765e-17, double %r.high)
  %squared = fmul contract double %r, %r
  ; (tan r - r) / r**3 in r**2 for |r| <= pi / 4. Coefficients minimise the greatest error.
  %q.5 = call double @llvm.fma.f64(double 0.004376828266213974, double %squared, double 8.843294815839083e-05)
  %q.4 = call double @llvm.fma.f64(double %q.5, double %squared, double 0.010836668156047113)
  %q.3 = call double @llvm.fma.f64(double %q.4, double %squared, double 0.021281863521483962)
  %q.2 = call double @llvm.fma.f64(double %q.3, double %squared, double 0.05405997799257647)
  %q.1 = call double @llvm.fma.f64(double %q.2, double %squared, double 0.13332662805506018)
  %q = call double @llvm.fma.f64(double %q.1, double %squared, double 0.33333349770148235)
  %cubic = fmul contract double %q, %squared
  %near = call double @llvm.fma.f64(double %cubic, double %r, double %r)
  %bits = bitcast double %shifted to i64
  %last = and i64 %bits, 1
  %is_odd = icmp ne i64 %last, 0
  %above = select i1 %is_odd, double -1.0, double %near
  %below = select i1 %is_odd, double %near, double 1.0
  %quotient = fdiv double %above, %below
  %result = fptrunc double %quotient to float
  ret float %result
}

; Whether a finite x is too large for @deplo_sin_small_f64 and its kin: above 2**30.
define internal i1 @deplo_is_large_angle_f64(double %x) alwaysinline {
  %size = call double @llvm.fabs.f64(double %x)
  %is_large = fcmp ogt double %size, 1073741824.0
  %is_finite = fcmp olt double %size, 0x7FF0000000000000
  %result = and i1 %is_large, %is_finite
  ret i1 %result
}

; r = x - n pi / 2 and the bits of n in the lowest ones, with n the integer nearest to x / (pi / 2).
; The parts of pi / 2 are positive, so that -0 stays.
define internal { double, i64 } @deplo_angle_parts_f64(double %x) alwaysinline {
  ; Adding 1.5 * 2**52 rounds to an integer.
  %shifted = call double @llvm.fma.f64(double %x, double 0.6366197723675814, double 6755399441055744.0)  ; 2 / pi
  %n = fsub double %shifted, 6755399441055744.0
  %r.high = call double @llvm.fma.f64(double %n, double -1.5707963267948966, double %x)
  %r.middle = call double @llvm.fma.f64(double %n, double -6.123233995736765e-17, double %r.high)
  %r = call double @llvm.fma.f64(double %n, double -1.082856673921914e-32, double %r.middle)
  %bits = bitcast double %shifted to i64
  %result.0 = insertvalue { double, i64 } poison, double %r, 0
  %result = insertvalue { double, i64 } %result.0, i64 %bits, 1
  ret { double, i64 } %result
}

; sin(x + quadrant * pi / 2) for |x| <= pi / 4; the quadrant is in the two lowest bits.
; Coefficients minimise the greatest error.
define internal double @deplo_sin_in_quadrant_f64(double %x, i64 %quadrant) alwaysinline {
  %squared = fmul contract double %x, %x
  %cube = call double @llvm.fma.f64(double %x, double %squared, double 0.0)  ; 0 for -0, so that the sine below is -0
  ; (sin x - x) / x**3 in x**2
  %s.5 = call double @llvm.fma.f64(double -7.586691094197958e-13, double %squared, double 1.6058531516797758e-10)
  %s.4 = call double @llvm.fma.f64(double %s.5, double %squared, double -2.5052106231802837e-08)
  %s.3 = call double @llvm.fma.f64(double %s.4, double %squared, double 2.7557319219337312e-06)
  %s.2 = call double @llvm.fma.f64(double %s.3, double %squared, double -0.00019841269841265063)
  %s.1 = call double @llvm.fma.f64(double %s.2, double %squared, double 0.008333333333333331)
  %s = call double @llvm.fma.f64(double %s.1, double %squared, double -0.16666666666666666)
  %sine = call double @llvm.fma.f64(double %s, double %cube, double %x)
  ; cos x in x**2
  %cosine.6 = call double @llvm.fma.f64(double -1.1353367957830792e-11, double %squared, double 2.0875582146477433e-09)
  %cosine.5 = call double @llvm.fma.f64(double %cosine.6, double %squared, double -2.755731309595641e-07)
  %cosine.4 = call double @llvm.fma.f64(double %cosine.5, double %squared, double 2.4801587283874084e-05)
  %cosine.3 = call double @llvm.fma.f64(double %cosine.4, double %squared, double -0.0013888888888861082)
  %cosine.2 = call double @llvm.fma.f64(double %cosine.3, double %squared, double 0.04166666666666645)
  %cosine.1 = call double @llvm.fma.f64(double %cosine.2, double %squared, double -0.5)
  %cosine = call double @llvm.fma.f64(double %cosine.1, double %squared, double 1.0)
  %half = and i64 %quadrant, 2
  %sign = shl i64 %half, 62
  %last = and i64 %quadrant, 1
  %is_odd = icmp ne i64 %last, 0
  %value = select i1 %is_odd, double %cosine, double %sine
  %bits = bitcast double %value to i64
  %signed = xor i64 %bits, %sign
  %result = bitcast i64 %signed to double
  ret double %result
}

; sin x for |x| <= 2**30.
define internal double @deplo_sin_small_f64(double %x) alwaysinline {
  %parts = call { double, i64 } @deplo_angle_parts_f64(double %x)
  %r = extractvalue { double, i64 } %parts, 0
  %quadrant = extractvalue { double, i64 } %parts, 1
  %result = call double @deplo_sin_in_quadrant_f64(double %r, i64 %quadrant)
  ret double %result
}

; cos x for |x| <= 2**30: a sine one quadrant further.
define internal double @deplo_cos_small_f64(double %x) alwaysinline {
  %parts = call { double, i64 } @deplo_angle_parts_f64(double %x)
  %r = extractvalue { double, i64 } %parts, 0
  %quadrant = extractvalue { double, i64 } %parts, 1
  %next = add i64 %quadrant, 1
  %result = call double @deplo_sin_in_quadrant_f64(double %r, i64 %next)
  ret double %result
}
