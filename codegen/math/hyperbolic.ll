; tanh of f32 and f64, sinh, cosh, asinh, acosh and atanh of f32, within 2 units in the last place.

declare float @llvm.copysign.f32(float, float)
declare double @llvm.copysign.f64(double, double)
declare float @llvm.fabs.f32(float)
declare double @llvm.fabs.f64(double)
declare float @llvm.fma.f32(float, float, float)
declare double @llvm.fma.f64(double, double, double)
declare double @llvm.sqrt.f64(double)

; tanh x: an odd polynomial up to 0.625, else 1 - 2 / (e**(2|x|) + 1) with the sign of x.
; Coefficients of Cephes (Moshier).
define internal float @deplo_tanh_f32(float %x) alwaysinline {
  %size = call float @llvm.fabs.f32(float %x)
  %squared = fmul contract float %x, %x
  ; (tanh x - x) / x**3 in x**2
  %q.3 = call float @llvm.fma.f32(float -0.0057049887254834175, float %squared, float 0.0206390880048275)
  %q.2 = call float @llvm.fma.f32(float %q.3, float %squared, float -0.05373971536755562)
  %q.1 = call float @llvm.fma.f32(float %q.2, float %squared, float 0.13331441581249237)
  %q = call float @llvm.fma.f32(float %q.1, float %squared, float -0.3333328068256378)
  %cubic = fmul contract float %q, %squared
  %near = call float @llvm.fma.f32(float %cubic, float %x, float %x)
  ; From 2|x| = 40 on the result rounds to 1.
  %doubled = fadd contract float %size, %size
  %is_one = fcmp ogt float %doubled, 40.0
  %held = select i1 %is_one, float 40.0, float %doubled
  %grown = call float @deplo_exp_moderate_f32(float %held)
  %denominator = fadd contract float %grown, 1.0
  %quotient = fdiv float 2.0, %denominator
  %far = fsub float 1.0, %quotient
  ; NaN takes the polynomial: the exponential may lose it.
  %is_near = fcmp ult float %size, 0.625
  %result = select i1 %is_near, float %near, float %far
  %signed = call float @llvm.copysign.f32(float %result, float %x)
  ret float %signed
}

; 1 + tanh x = 2 / (1 + e**(-2x)), accurate where it is nearly 0, and 0 below -43 where it is less than 2**-123.
define internal float @deplo_tanh_plus_one_f32(float %x) alwaysinline {
  %is_low = fcmp olt float %x, -43.0
  %raised = select i1 %is_low, float -43.0, float %x
  %is_high = fcmp ogt float %raised, 43.0
  %held = select i1 %is_high, float 43.0, float %raised
  %exponent = fmul contract float %held, -2.0
  %grown = call float @deplo_exp_moderate_f32(float %exponent)
  %denominator = fadd contract float %grown, 1.0
  %quotient = fdiv float 2.0, %denominator
  %is_zero = fcmp olt float %x, -43.0
  %result = select i1 %is_zero, float 0.0, float %quotient
  %is_nan = fcmp uno float %x, %x
  %chosen = select i1 %is_nan, float %x, float %result
  ret float %chosen
}

; What sinh x and cosh x are made of. With n the integer nearest to |x| / ln 2 and r = |x| - n ln 2,
;
;     sinh |x| = sinh(n ln 2) cosh r + cosh(n ln 2) sinh r
;     cosh x   = cosh(n ln 2) cosh r + sinh(n ln 2) sinh r
;
; where sinh and cosh of n ln 2 are (2**n -+ 2**-n) / 2. Returns sinh(n ln 2) / 2, cosh(n ln 2) / 2, r,
; sinh r - r and cosh r - 1: halves, because 2**128 is no float. Coefficients minimise the greatest error.
define internal { float, float, float, float, float } @deplo_sinh_cosh_parts_f32(float %x) alwaysinline {
  ; From |x| = 89.5 on both are infinite.
  %size = call float @llvm.fabs.f32(float %x)
  %is_high = fcmp ogt float %size, 89.5
  %held = select i1 %is_high, float 89.5, float %size
  %shifted = call float @llvm.fma.f32(float %held, float 1.4426950216293335, float 12582912.0)
  %n = fsub float %shifted, 12582912.0
  %r.high = call float @llvm.fma.f32(float %n, float -0.693359375, float %held)
  %r = call float @llvm.fma.f32(float %n, float 0.00021219444170128554, float %r.high)
  %shifted.bits = bitcast float %shifted to i32
  %exponent = shl i32 %shifted.bits, 23
  %grown.bits = add i32 1048576000, %exponent  ; the bits of 0.25
  %grown = bitcast i32 %grown.bits to float
  %shrunk = fdiv float 0.0625, %grown
  %squared = fmul contract float %r, %r
  %sinh_n = fsub float %grown, %shrunk
  %cosh_n = fadd contract float %grown, %shrunk
  ; (sinh r - r) / r**3 in r**2 for |r| <= ln 2 / 2
  %s.1 = call float @llvm.fma.f32(float 0.00019904885266441852, float %squared, float 0.008333289064466953)
  %s = call float @llvm.fma.f32(float %s.1, float %squared, float 0.1666666716337204)
  %s.squared = fmul contract float %s, %squared
  %sinh_tail = fmul contract float %s.squared, %r
  ; (cosh r - 1) / r**2 in r**2
  %c.1 = call float @llvm.fma.f32(float 0.0013946229591965675, float %squared, float 0.041666265577077866)
  %c = call float @llvm.fma.f32(float %c.1, float %squared, float 0.5)
  %cosh_tail = fmul contract float %c, %squared
  %result.0 = insertvalue { float, float, float, float, float } poison, float %sinh_n, 0
  %result.1 = insertvalue { float, float, float, float, float } %result.0, float %cosh_n, 1
  %result.2 = insertvalue { float, float, float, float, float } %result.1, float %r, 2
  %result.3 = insertvalue { float, float, float, float, float } %result.2, float %sinh_tail, 3
  %result = insertvalue { float, float, float, float, float } %result.3, float %cosh_tail, 4
  ret { float, float, float, float, float } %result
}

define internal float @deplo_sinh_f32(float %x) alwaysinline {
  %parts = call { float, float, float, float, float } @deplo_sinh_cosh_parts_f32(float %x)
  %sinh_n = extractvalue { float, float, float, float, float } %parts, 0
  %cosh_n = extractvalue { float, float, float, float, float } %parts, 1
  %r = extractvalue { float, float, float, float, float } %parts, 2
  %sinh_tail = extractvalue { float, float, float, float, float } %parts, 3
  %cosh_tail = extractvalue { float, float, float, float, float } %parts, 4
  %product = fmul contract float %cosh_n, %sinh_tail
  %tail = call float @llvm.fma.f32(float %sinh_n, float %cosh_tail, float %product)
  %near = call float @llvm.fma.f32(float %cosh_n, float %r, float %tail)
  %half = fadd contract float %sinh_n, %near
  ; Below 2**-12 the result is x: halving would lose a bit of a subnormal number.
  %size = call float @llvm.fabs.f32(float %x)
  %is_tiny = fcmp olt float %size, 0.000244140625
  %doubled = fadd contract float %half, %half
  %signed = call float @llvm.copysign.f32(float %doubled, float %x)
  %result = select i1 %is_tiny, float %x, float %signed
  ret float %result
}

define internal float @deplo_cosh_f32(float %x) alwaysinline {
  %parts = call { float, float, float, float, float } @deplo_sinh_cosh_parts_f32(float %x)
  %sinh_n = extractvalue { float, float, float, float, float } %parts, 0
  %cosh_n = extractvalue { float, float, float, float, float } %parts, 1
  %r = extractvalue { float, float, float, float, float } %parts, 2
  %sinh_tail = extractvalue { float, float, float, float, float } %parts, 3
  %cosh_tail = extractvalue { float, float, float, float, float } %parts, 4
  %product = fmul contract float %sinh_n, %sinh_tail
  %tail = call float @llvm.fma.f32(float %cosh_n, float %cosh_tail, float %product)
  %near = call float @llvm.fma.f32(float %sinh_n, float %r, float %tail)
  %half = fadd contract float %cosh_n, %near
  %doubled = fadd contract float %half, %half
  ret float %doubled
}

; asinh x = ln(|x| + sqrt(x**2 + 1)) with the sign of x. The logarithm is of f64, in which x**2 does not
; overflow and the cancellation near 0 leaves enough bits.
define internal float @deplo_asinh_f32(float %x) alwaysinline {
  %size = call float @llvm.fabs.f32(float %x)
  %wide = fpext float %size to double
  %square = call double @llvm.fma.f64(double %wide, double %wide, double 1.0)
  %root = call double @llvm.sqrt.f64(double %square)
  %sum = fadd contract double %wide, %root
  %logarithm = call double @deplo_log2_short_f64(double %sum)
  %natural = fmul contract double %logarithm, 0.6931471805599453  ; ln 2
  %narrowed = fptrunc double %natural to float
  %signed = call float @llvm.copysign.f32(float %narrowed, float %x)
  ; Below 2**-12 the result is x.
  %is_tiny = fcmp olt float %size, 0.000244140625
  %result = select i1 %is_tiny, float %x, float %signed
  ret float %result
}

; acosh x = ln(x + sqrt(x**2 - 1)), NaN below 1. The logarithm is of f64, as in @deplo_asinh_f32.
define internal float @deplo_acosh_f32(float %x) alwaysinline {
  %wide = fpext float %x to double
  %square = call double @llvm.fma.f64(double %wide, double %wide, double -1.0)
  %root = call double @llvm.sqrt.f64(double %square)
  %sum = fadd contract double %wide, %root
  %logarithm = call double @deplo_log2_short_f64(double %sum)
  %natural = fmul contract double %logarithm, 0.6931471805599453  ; ln 2
  %narrowed = fptrunc double %natural to float
  %is_undefined = fcmp olt float %x, 1.0
  %result = select i1 %is_undefined, float 0x7FF8000000000000, float %narrowed
  ret float %result
}

; atanh x: an odd polynomial up to 1/2, else ln((1 + |x|) / (1 - |x|)) / 2 with the sign of x.
; Coefficients minimise the greatest error.
define internal float @deplo_atanh_f32(float %x) alwaysinline {
  %size = call float @llvm.fabs.f32(float %x)
  %squared = fmul contract float %x, %x
  ; (atanh x - x) / x**3 in x**2
  %q.4 = call float @llvm.fma.f32(float 0.17669031023979187, float %squared, float 0.051358845084905624)
  %q.3 = call float @llvm.fma.f32(float %q.4, float %squared, float 0.11823715269565582)
  %q.2 = call float @llvm.fma.f32(float %q.3, float %squared, float 0.1422276347875595)
  %q.1 = call float @llvm.fma.f32(float %q.2, float %squared, float 0.20002518594264984)
  %q = call float @llvm.fma.f32(float %q.1, float %squared, float 0.33333301544189453)
  %cubic = fmul contract float %q, %squared
  %near = call float @llvm.fma.f32(float %cubic, float %x, float %x)
  %above = fadd contract float 1.0, %size
  %below = fsub float 1.0, %size
  %ratio = fdiv float %above, %below
  %logarithm = call float @deplo_log_f32(float %ratio)
  %half = fmul contract float %logarithm, 0.5
  %far = call float @llvm.copysign.f32(float %half, float %x)
  %is_far = fcmp ogt float %size, 0.5
  %result = select i1 %is_far, float %far, float %near
  ret float %result
}

; tanh x: an odd polynomial up to 0.625, else 1 - 2 / (e**(2|x|) + 1) with the sign of x.
; Coefficients minimise the greatest error.
define internal double @deplo_tanh_f64(double %x) alwaysinline {
  %size = call double @llvm.fabs.f64(double %x)
  %squared = fmul contract double %x, %x
  ; (tanh x - x) / x**3 in x**2
  %q.10 = call double @llvm.fma.f64(double 6.485163482793113e-06, double %squared, double -3.12011014257974e-05)
  %q.9 = call double @llvm.fma.f64(double %q.10, double %squared, double 9.257116129556769e-05)
  %q.8 = call double @llvm.fma.f64(double %q.9, double %squared, double -0.0002375906496055562)
  %q.7 = call double @llvm.fma.f64(double %q.8, double %squared, double 0.0005896606577757043)
  %q.6 = call double @llvm.fma.f64(double %q.7, double %squared, double -0.0014557754120478055)
  %q.5 = call double @llvm.fma.f64(double %q.6, double %squared, double 0.0035921217511549622)
  %q.4 = call double @llvm.fma.f64(double %q.5, double %squared, double -0.008863235103240878)
  %q.3 = call double @llvm.fma.f64(double %q.4, double %squared, double 0.021869488519008305)
  %q.2 = call double @llvm.fma.f64(double %q.3, double %squared, double -0.05396825396789699)
  %q.1 = call double @llvm.fma.f64(double %q.2, double %squared, double 0.13333333333333042)
  %q = call double @llvm.fma.f64(double %q.1, double %squared, double -0.3333333333333333)
  %cubic = fmul contract double %q, %squared
  %near = call double @llvm.fma.f64(double %cubic, double %x, double %x)
  ; From 2|x| = 40 on the result rounds to 1.
  %doubled = fadd contract double %size, %size
  %is_one = fcmp ogt double %doubled, 40.0
  %held = select i1 %is_one, double 40.0, double %doubled
  %grown = call double @deplo_exp_moderate_f64(double %held)
  %denominator = fadd contract double %grown, 1.0
  %quotient = fdiv double 2.0, %denominator
  %far = fsub double 1.0, %quotient
  ; NaN takes the polynomial: the exponential may lose it.
  %is_near = fcmp ult double %size, 0.625
  %result = select i1 %is_near, double %near, double %far
  %signed = call double @llvm.copysign.f64(double %result, double %x)
  ret double %signed
}
