; erf of f32 and f64 within 2 units in the last place, and 1 + erf of f32.
;
; Coefficients minimise the greatest error.

declare float @llvm.copysign.f32(float, float)
declare double @llvm.copysign.f64(double, double)
declare float @llvm.fabs.f32(float)
declare double @llvm.fabs.f64(double)
declare float @llvm.fma.f32(float, float, float)
declare double @llvm.fma.f64(double, double, double)

; erf x: an odd polynomial up to 1, else a polynomial of |x| with the sign of x.
; The formula 1 - e**(-polynomial of |x|) takes twice as long and more constants than registers.
define internal float @deplo_erf_f32(float %x) alwaysinline {
  %size = call float @llvm.fabs.f32(float %x)
  %squared = fmul contract float %x, %x
  ; erf(x) / x - 1 in x**2 for |x| <= 1
  %q.4 = call float @llvm.fma.f32(float -0.0005631421809084713, float %squared, float 0.004917551297694445)
  %q.3 = call float @llvm.fma.f32(float %q.4, float %squared, float -0.02671131119132042)
  %q.2 = call float @llvm.fma.f32(float %q.3, float %squared, float 0.11280179768800735)
  %q.1 = call float @llvm.fma.f32(float %q.2, float %squared, float -0.37612324953079224)
  %q = call float @llvm.fma.f32(float %q.1, float %squared, float 0.12837912142276764)
  %near = call float @llvm.fma.f32(float %q, float %x, float %x)
  ; From 3.92 on erf rounds to 1, and the polynomial is 1 there.
  %is_one = fcmp ogt float %size, 3.9200000762939453
  %held = select i1 %is_one, float 3.9200000762939453, float %size
  %place = fsub float %held, 2.375
  ; erf(x) in x - 2.375 for 1 <= x <= 3.92
  %far.11 = call float @llvm.fma.f32(float -9.124665666604415e-06, float %place, float 3.472762182354927e-05)
  %far.10 = call float @llvm.fma.f32(float %far.11, float %place, float 2.354693424422294e-05)
  %far.9 = call float @llvm.fma.f32(float %far.10, float %place, float -0.00033425737638026476)
  %far.8 = call float @llvm.fma.f32(float %far.9, float %place, float 0.000635900825727731)
  %far.7 = call float @llvm.fma.f32(float %far.8, float %place, float 0.0001143933113780804)
  %far.6 = call float @llvm.fma.f32(float %far.7, float %place, float -0.0031433007679879665)
  %far.5 = call float @llvm.fma.f32(float %far.6, float %place, float 0.008363678120076656)
  %far.4 = call float @llvm.fma.f32(float %far.5, float %place, float -0.013123332522809505)
  %far.3 = call float @llvm.fma.f32(float %far.4, float %place, float 0.013728903606534004)
  %far.2 = call float @llvm.fma.f32(float %far.3, float %place, float -0.009516656398773193)
  %far.1 = call float @llvm.fma.f32(float %far.2, float %place, float 0.004006588831543922)
  %far = call float @llvm.fma.f32(float %far.1, float %place, float 0.9992170929908752)
  ; NaN takes the polynomial near 0.
  %is_far = fcmp ogt float %size, 1.0
  %signed = call float @llvm.copysign.f32(float %far, float %x)
  %result = select i1 %is_far, float %signed, float %near
  ret float %result
}

; 1 + erf x = 2**log2(1 - erf |x|) for negative x, else 2 less that. NaN stays.
; The sum of 1 and a rounded erf(x) would lose the digits below the last one of 1: at x = -3.9, all of them.
; log2(1 - erf x) is a polynomial in x up to 2.375, in x - 4.0947265625 beyond. Its coefficients minimise the
; greatest error (Lawson's algorithm at 800 Chebyshev points, each coefficient rounded before the next is
; fitted), relative to the lesser of 0.35 * 2**-24 and (5 + x**2 / 2) * 2**-25 of 1 - erf x. The last ones are
; multiples of 2**-16: their difference from an integer of up to 127 is exact.
define internal float @deplo_erf_plus_one_f32(float %x) alwaysinline {
  %size = call float @llvm.fabs.f32(float %x)
  ; From 9.2319485 on 1 - erf x is less than 2**-127, no normal number.
  %is_zero = fcmp ogt float %size, 9.231948852539062
  %held = select i1 %is_zero, float 9.231948852539062, float %size
  %is_far = fcmp ogt float %held, 2.375
  %c9 = select i1 %is_far, float -1.2943297988954328e-08, float 1.1455073945398908e-05
  %c8 = select i1 %is_far, float 2.7978143180007464e-07, float -0.00015005677414592355
  %c7 = select i1 %is_far, float -2.7920998491026694e-06, float 0.0008319364278577268
  %c6 = select i1 %is_far, float 1.9306909962324426e-05, float -0.002233002567663789
  %c5 = select i1 %is_far, float -0.00012126177898608148, float 2.890634277719073e-05
  %c4 = select i1 %is_far, float 0.0007786658243276179, float 0.02776452898979187
  %c3 = select i1 %is_far, float -0.0051633622497320175, float -0.14832264184951782
  %c2 = select i1 %is_far, float -1.4058935642242432, float -0.9184404611587524
  %c1 = select i1 %is_far, float -12.14879035949707, float -1.627907395362854
  %c0 = select i1 %is_far, float -27.089080810546875, float 0.0
  %moved = fsub float %held, 4.0947265625
  %place = select i1 %is_far, float %moved, float %held
  %s8 = call float @llvm.fma.f32(float %c9, float %place, float %c8)
  %s7 = call float @llvm.fma.f32(float %s8, float %place, float %c7)
  %s6 = call float @llvm.fma.f32(float %s7, float %place, float %c6)
  %s5 = call float @llvm.fma.f32(float %s6, float %place, float %c5)
  %s4 = call float @llvm.fma.f32(float %s5, float %place, float %c4)
  %s3 = call float @llvm.fma.f32(float %s4, float %place, float %c3)
  %s2 = call float @llvm.fma.f32(float %s3, float %place, float %c2)
  %s1 = call float @llvm.fma.f32(float %s2, float %place, float %c1)
  ; n, the integer nearest to the logarithm, is subtracted from c0: the sum of both would lose digits of it.
  %logarithm = call float @llvm.fma.f32(float %s1, float %place, float %c0)
  %shifted = fadd contract float %logarithm, 12583039.0
  %n = fsub float %shifted, 12583039.0
  %c0.less = fsub float %c0, %n
  %r = call float @llvm.fma.f32(float %s1, float %place, float %c0.less)
  %bits = bitcast float %shifted to i32
  %power.bits = shl i32 %bits, 23
  %power = bitcast i32 %power.bits to float
  ; (2**r - 1) / r, as in @deplo_exp2_reduced_f32
  %q.4 = call float @llvm.fma.f32(float 0.00015353361959569156, float %r, float 0.0013398873852565885)
  %q.3 = call float @llvm.fma.f32(float %q.4, float %r, float 0.00961843691766262)
  %q.2 = call float @llvm.fma.f32(float %q.3, float %r, float 0.055503323674201965)
  %q.1 = call float @llvm.fma.f32(float %q.2, float %r, float 0.24022647738456726)
  %q = call float @llvm.fma.f32(float %q.1, float %r, float 0.6931471824645996)
  %near = fmul contract float %q, %r
  %rest = call float @llvm.fma.f32(float %near, float %power, float %power)
  %is_negative = fcmp olt float %x, 0.0
  %other = fsub float 2.0, %rest
  %result = select i1 %is_negative, float %rest, float %other
  ret float %result
}

; erf x: an odd polynomial up to 1, else 1 - e**(-x**2) * polynomial, with the sign of x.
define internal double @deplo_erf_f64(double %x) alwaysinline {
  %size = call double @llvm.fabs.f64(double %x)
  %squared = fmul contract double %x, %x
  ; erf(x) / x - 1 in x**2 for |x| <= 1
  %q.10 = call double @llvm.fma.f64(double -7.795898827002142e-10, double %squared, double 1.3720064546777686e-08)
  %q.9 = call double @llvm.fma.f64(double %q.10, double %squared, double -1.6208483801871705e-07)
  %q.8 = call double @llvm.fma.f64(double %q.9, double %squared, double 1.6447424703317362e-06)
  %q.7 = call double @llvm.fma.f64(double %q.8, double %squared, double -1.492473690741966e-05)
  %q.6 = call double @llvm.fma.f64(double %q.7, double %squared, double 0.00012055294904839707)
  %q.5 = call double @llvm.fma.f64(double %q.6, double %squared, double -0.0008548325975389692)
  %q.4 = call double @llvm.fma.f64(double %q.5, double %squared, double 0.0052239776071164225)
  %q.3 = call double @llvm.fma.f64(double %q.4, double %squared, double -0.02686617064323777)
  %q.2 = call double @llvm.fma.f64(double %q.3, double %squared, double 0.11283791670945006)
  %q.1 = call double @llvm.fma.f64(double %q.2, double %squared, double -0.37612638903183543)
  %q = call double @llvm.fma.f64(double %q.1, double %squared, double 0.12837916709551256)
  %near = call double @llvm.fma.f64(double %q, double %x, double %x)
  ; From 6 on the result rounds to 1.
  %is_one = fcmp ogt double %size, 6.0
  %held = select i1 %is_one, double 6.0, double %size
  %place.above = fsub double %held, 3.0
  %place.below = fadd contract double %held, 3.0
  %place = fdiv double %place.above, %place.below
  %held.squared = fmul contract double %held, %held
  %exponent = fneg double %held.squared
  %fallen = call double @deplo_exp_moderate_f64(double %exponent)
  ; (1 - erf x) e**(x**2) in (x - 3) / (x + 3) for 1 <= x <= 6
  %p.13 = call double @llvm.fma.f64(double 1.2801900862962662e-06, double %place, double 2.023603179641757e-06)
  %p.12 = call double @llvm.fma.f64(double %p.13, double %place, double -8.008021319412685e-06)
  %p.11 = call double @llvm.fma.f64(double %p.12, double %place, double -1.284889451252353e-05)
  %p.10 = call double @llvm.fma.f64(double %p.11, double %place, double 6.406182073530546e-05)
  %p.9 = call double @llvm.fma.f64(double %p.10, double %place, double 4.525472635483354e-05)
  %p.8 = call double @llvm.fma.f64(double %p.9, double %place, double -0.0005970623517093284)
  %p.7 = call double @llvm.fma.f64(double %p.8, double %place, double 0.0007077464443901538)
  %p.6 = call double @llvm.fma.f64(double %p.7, double %place, double 0.004269136347508256)
  %p.5 = call double @llvm.fma.f64(double %p.6, double %place, double -0.024392499318273194)
  %p.4 = call double @llvm.fma.f64(double %p.5, double %place, double 0.07166583719774874)
  %p.3 = call double @llvm.fma.f64(double %p.4, double %place, double -0.15011593650078744)
  %p.2 = call double @llvm.fma.f64(double %p.3, double %place, double 0.24560380171233195)
  %p.1 = call double @llvm.fma.f64(double %p.2, double %place, double -0.32623356004303716)
  %p = call double @llvm.fma.f64(double %p.1, double %place, double 0.17900115118138996)
  %rest = fmul contract double %fallen, %p
  %far = fsub double 1.0, %rest
  ; NaN takes the polynomial near 0.
  %is_far = fcmp ogt double %size, 1.0
  %signed = call double @llvm.copysign.f64(double %far, double %x)
  %result = select i1 %is_far, double %signed, double %near
  ret double %result
}
