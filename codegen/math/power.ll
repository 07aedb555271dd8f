; Powers and cube roots of f32 by polynomials of f64: within 1 unit in the last place.
;
; The exponent of x**y = 2**(y log2 x) has up to seven bits in front of the point and needs as many more behind
; it than f32 has. f64 has these bits, and no result is subnormal in it; rounding to f32 makes infinities,
; zeros and subnormal numbers. Coefficients minimise the greatest relative error: 2**-33 of the logarithm,
; 2**-29 of the power.

declare float @llvm.copysign.f32(float, float)
declare float @llvm.fabs.f32(float)
declare float @llvm.floor.f32(float)
declare double @llvm.fma.f64(double, double, double)

; log2 x of an f64 from 2**-1000 up, 0, infinity or NaN, to the accuracy of f32; see @deplo_log_parts_f64.
define internal double @deplo_log2_short_f64(double %x) alwaysinline {
  %bits = bitcast double %x to i64
  %raised = add i64 %bits, 2638147582215219
  %exponent = lshr i64 %raised, 52
  %n.bits = or i64 %exponent, 4841369599423283200  ; added to 2**52
  %n.raised = bitcast i64 %n.bits to double
  %n = fsub double %n.raised, 4503599627371519.0
  %mantissa = and i64 %raised, 4503599627370495
  %fraction.bits = add i64 %mantissa, 4604544271217802189
  %fraction = bitcast i64 %fraction.bits to double
  %f = fsub double %fraction, 1.0
  ; log2(1 + f) / f for 1 + f in [sqrt 1/2, sqrt 2).
  %q.10 = call double @llvm.fma.f64(double -0.08634579896641562, double %f, double 0.1548573960483733)
  %q.9 = call double @llvm.fma.f64(double %q.10, double %f, double -0.15698228666457548)
  %q.8 = call double @llvm.fma.f64(double %q.9, double %f, double 0.1590015273649325)
  %q.7 = call double @llvm.fma.f64(double %q.8, double %f, double -0.17904695244697458)
  %q.6 = call double @llvm.fma.f64(double %q.7, double %f, double 0.20609625378394675)
  %q.5 = call double @llvm.fma.f64(double %q.6, double %f, double -0.2405041740115494)
  %q.4 = call double @llvm.fma.f64(double %q.5, double %f, double 0.28854064364717674)
  %q.3 = call double @llvm.fma.f64(double %q.4, double %f, double -0.36067280055045664)
  %q.2 = call double @llvm.fma.f64(double %q.3, double %f, double 0.480898320728277)
  %q.1 = call double @llvm.fma.f64(double %q.2, double %f, double -0.7213475252131859)
  %q = call double @llvm.fma.f64(double %q.1, double %f, double 1.4426950409393495)
  %near = call double @llvm.fma.f64(double %q, double %f, double %n)
  %is_zero = fcmp oeq double %x, 0.0
  %result = select i1 %is_zero, double 0xFFF0000000000000, double %near
  ; Infinity and NaN are their own logarithms.
  %is_finite = fcmp olt double %x, 0x7FF0000000000000
  %chosen = select i1 %is_finite, double %result, double %x
  ret double %chosen
}

; 2**x of an f64, to the accuracy of f32: infinite from 2**128, 0 below 2**-149.
define internal double @deplo_exp2_short_f64(double %x) alwaysinline {
  %is_low = fcmp olt double %x, -256.0
  %raised = select i1 %is_low, double -256.0, double %x
  %is_high = fcmp ogt double %raised, 256.0
  %held = select i1 %is_high, double 256.0, double %raised
  %shifted = fadd contract double %held, 6755399441055744.0  ; 1.5 * 2**52 rounds to an integer
  %n = fsub double %shifted, 6755399441055744.0
  %r = fsub double %held, %n
  ; 2**r for |r| <= 1/2.
  %near.5 = call double @llvm.fma.f64(double 0.0001534581148663382, double %r, double 0.0013399931212740059)
  %near.4 = call double @llvm.fma.f64(double %near.5, double %r, double 0.009618488959035457)
  %near.3 = call double @llvm.fma.f64(double %near.4, double %r, double 0.05550328776986048)
  %near.2 = call double @llvm.fma.f64(double %near.3, double %r, double 0.2402264689061681)
  %near.1 = call double @llvm.fma.f64(double %near.2, double %r, double 0.693147205737255)
  %near = call double @llvm.fma.f64(double %near.1, double %r, double 1.0000000005541678)
  %shifted.bits = bitcast double %shifted to i64
  %exponent = shl i64 %shifted.bits, 52
  %power.bits = add i64 %exponent, 4607182418800017408  ; the bits of 1
  %power = bitcast i64 %power.bits to double
  %result = fmul contract double %near, %power
  ret double %result
}

; x**y, equal to C's powf for zeros, infinities, NaN and negative bases.
define internal float @deplo_pow_f32(float %x, float %y) alwaysinline {
  ; An infinite exponent becomes a finite one beyond f32, because 1**infinity is 1.
  %y.wide = fpext float %y to double
  %is_low = fcmp olt double %y.wide, -1.0e+40
  %y.raised = select i1 %is_low, double -1.0e+40, double %y.wide
  %is_high = fcmp ogt double %y.raised, 1.0e+40
  %y.held = select i1 %is_high, double 1.0e+40, double %y.raised
  %x.size = call float @llvm.fabs.f32(float %x)
  %x.wide = fpext float %x.size to double
  %logarithm = call double @deplo_log2_short_f64(double %x.wide)
  %exponent = fmul contract double %y.held, %logarithm
  %power = call double @deplo_exp2_short_f64(double %exponent)
  %narrowed = fptrunc double %power to float
  ; x**0 and 1**y are 1, even of NaN.
  %y.is_zero = fcmp oeq float %y, 0.0
  %x.is_one = fcmp oeq float %x, 1.0
  %is_one = or i1 %y.is_zero, %x.is_one
  %size = select i1 %is_one, float 1.0, float %narrowed
  ; y is odd if it is an integer and its half is none.
  %half = fmul contract float %y, 0.5
  %below = call float @llvm.floor.f32(float %y)
  %half.below = call float @llvm.floor.f32(float %half)
  %half.has_fraction = fcmp one float %half.below, %half
  %is_integer = fcmp oeq float %below, %y
  %is_odd = and i1 %half.has_fraction, %is_integer
  %signed = call float @llvm.copysign.f32(float %size, float %x)
  %result = select i1 %is_odd, float %signed, float %size
  ; A finite negative base has a power only for integers.
  %is_negative = fcmp olt float %x, 0.0
  %is_finite = fcmp ogt float %x, 0xFFF0000000000000
  %is_number = and i1 %is_negative, %is_finite
  %has_fraction = fcmp one float %below, %y
  %is_undefined = and i1 %is_number, %has_fraction
  %chosen = select i1 %is_undefined, float 0x7FF8000000000000, float %result
  ret float %chosen
}

; The cube root of x: 2**(log2 |x| / 3) with the sign of x.
define internal float @deplo_cbrt_f32(float %x) alwaysinline {
  %size = call float @llvm.fabs.f32(float %x)
  %wide = fpext float %size to double
  %logarithm = call double @deplo_log2_short_f64(double %wide)
  %third = fmul contract double %logarithm, 0.3333333333333333
  %power = call double @deplo_exp2_short_f64(double %third)
  %narrowed = fptrunc double %power to float
  %result = call float @llvm.copysign.f32(float %narrowed, float %x)
  ret float %result
}
