; Logarithms of f32 and f64, within 2 units in the last place for every argument.

declare float @llvm.fabs.f32(float)
declare double @llvm.fabs.f64(double)
declare float @llvm.fma.f32(float, float, float)
declare double @llvm.fma.f64(double, double, double)

; n and f with x = 2**n (1 + f) and 1 + f in [sqrt 1/2, sqrt 2), for positive x.
define internal { float, float } @deplo_log_parts_f32(float %x) alwaysinline {
  ; A subnormal number is scaled by 2**23.
  %is_tiny = fcmp olt float %x, 1.1754943508222875e-38
  %enlarged = fmul contract float %x, 8388608.0
  %scaled = select i1 %is_tiny, float %enlarged, float %x
  ; Adding bits(1) - bits(sqrt 1/2) carries into the exponent where the mantissa is at least sqrt 1/2.
  %bits = bitcast float %scaled to i32
  %raised = add i32 %bits, 4913933
  %exponent = lshr i32 %raised, 23
  ; The integer in the low bits of 2**23 is added to it.
  %n.bits = or i32 %exponent, 1258291200
  %n.raised = bitcast i32 %n.bits to float
  %zero = select i1 %is_tiny, float 8388758.0, float 8388735.0
  %n = fsub float %n.raised, %zero
  %mantissa = and i32 %raised, 8388607
  %fraction.bits = add i32 %mantissa, 1060439283
  %fraction = bitcast i32 %fraction.bits to float
  %f = fsub float %fraction, 1.0
  %result.0 = insertvalue { float, float } poison, float %n, 0
  %result = insertvalue { float, float } %result.0, float %f, 1
  ret { float, float } %result
}

; ln(1 + f) - f = -f**2 / 2 + f**3 q(f) for 1 + f in [sqrt 1/2, sqrt 2). Coefficients of Cephes (Moshier).
define internal float @deplo_log_tail_f32(float %f) alwaysinline {
  %f.squared = fmul contract float %f, %f
  %q.7 = call float @llvm.fma.f32(float 0.07037683576345444, float %f, float -0.11514610052108765)
  %q.6 = call float @llvm.fma.f32(float %q.7, float %f, float 0.11676998436450958)
  %q.5 = call float @llvm.fma.f32(float %q.6, float %f, float -0.12420140951871872)
  %q.4 = call float @llvm.fma.f32(float %q.5, float %f, float 0.14249323308467865)
  %q.3 = call float @llvm.fma.f32(float %q.4, float %f, float -0.16668057441711426)
  %q.2 = call float @llvm.fma.f32(float %q.3, float %f, float 0.2000071406364441)
  %q.1 = call float @llvm.fma.f32(float %q.2, float %f, float -0.24999994039535522)
  %q = call float @llvm.fma.f32(float %q.1, float %f, float 0.3333333134651184)
  %q.once = fmul contract float %q, %f
  %cubic = fmul contract float %q.once, %f.squared
  %result = call float @llvm.fma.f32(float %f.squared, float -0.5, float %cubic)
  ret float %result
}

; The logarithm of x, given its value for positive numbers.
define internal float @deplo_log_edges_f32(float %x, float %result) alwaysinline {
  %is_zero = fcmp oeq float %x, 0.0
  %or_infinite = select i1 %is_zero, float 0xFFF0000000000000, float %result
  %is_negative = fcmp olt float %x, 0.0
  %or_nan = select i1 %is_negative, float 0x7FF8000000000000, float %or_infinite
  ; Infinity and NaN are their own logarithms.
  %is_below = fcmp ult float %x, 0x7FF0000000000000
  %is_nan = fcmp uno float %x, %x
  %or_same = select i1 %is_nan, float %x, float %or_nan
  %chosen = select i1 %is_below, float %or_same, float %x
  ret float %chosen
}

; ln x = n ln 2 + f + tail, in two parts of ln 2.
define internal float @deplo_log_f32(float %x) alwaysinline {
  %parts = call { float, float } @deplo_log_parts_f32(float %x)
  %n = extractvalue { float, float } %parts, 0
  %f = extractvalue { float, float } %parts, 1
  %tail = call float @deplo_log_tail_f32(float %f)
  %low = call float @llvm.fma.f32(float %n, float -0.00021219444170128554, float %tail)
  %near = fadd contract float %f, %low
  %result = call float @llvm.fma.f32(float %n, float 0.693359375, float %near)
  %chosen = call float @deplo_log_edges_f32(float %x, float %result)
  ret float %chosen
}

; ln(1 + x): the logarithm of the rounded sum u; what its rounding lost, over u, is added to the tail.
define internal float @deplo_log1p_f32(float %x) alwaysinline {
  %u = fadd contract float %x, 1.0
  %u.less = fsub float %u, 1.0
  %lost = fsub float %x, %u.less
  %parts = call { float, float } @deplo_log_parts_f32(float %u)
  %n = extractvalue { float, float } %parts, 0
  %f = extractvalue { float, float } %parts, 1
  %tail = call float @deplo_log_tail_f32(float %f)
  %correction = fdiv float %lost, %u
  %corrected = fadd contract float %tail, %correction
  %low = call float @llvm.fma.f32(float %n, float -0.00021219444170128554, float %corrected)
  %near = fadd contract float %f, %low
  %result = call float @llvm.fma.f32(float %n, float 0.693359375, float %near)
  %whole = call float @deplo_log_edges_f32(float %u, float %result)
  ; Below 2**-24 the result is x.
  %size = call float @llvm.fabs.f32(float %x)
  %is_tiny = fcmp olt float %size, 5.960464477539063e-08
  %chosen = select i1 %is_tiny, float %x, float %whole
  ret float %chosen
}

; log2 x = n + (f + tail) log2 e, in two parts of log2 e.
define internal float @deplo_log2_f32(float %x) alwaysinline {
  %parts = call { float, float } @deplo_log_parts_f32(float %x)
  %n = extractvalue { float, float } %parts, 0
  %f = extractvalue { float, float } %parts, 1
  %tail = call float @deplo_log_tail_f32(float %f)
  %f.low = fmul contract float %f, 1.925963033500011e-08
  %low = call float @llvm.fma.f32(float %tail, float 1.4426950216293335, float %f.low)
  %near = call float @llvm.fma.f32(float %f, float 1.4426950216293335, float %low)
  %result = fadd contract float %n, %near
  %chosen = call float @deplo_log_edges_f32(float %x, float %result)
  ret float %chosen
}

; log10 x = n log10 2 + (f + tail) log10 e, in two parts of each constant.
define internal float @deplo_log10_f32(float %x) alwaysinline {
  %parts = call { float, float } @deplo_log_parts_f32(float %x)
  %n = extractvalue { float, float } %parts, 0
  %f = extractvalue { float, float } %parts, 1
  %tail = call float @deplo_log_tail_f32(float %f)
  %f.low = fmul contract float %f, -1.0103049952192578e-08
  %low = call float @llvm.fma.f32(float %tail, float 0.4342944920063019, float %f.low)
  %near = call float @llvm.fma.f32(float %f, float 0.4342944920063019, float %low)
  %n.low = call float @llvm.fma.f32(float %n, float 4.605039066518657e-06, float %near)
  %result = call float @llvm.fma.f32(float %n, float 0.301025390625, float %n.low)
  %chosen = call float @deplo_log_edges_f32(float %x, float %result)
  ret float %chosen
}

; n and f with x = 2**n (1 + f) and 1 + f in [sqrt 1/2, sqrt 2), for positive x.
define internal { double, double } @deplo_log_parts_f64(double %x) alwaysinline {
  ; A subnormal number is scaled by 2**52.
  %is_tiny = fcmp olt double %x, 2.2250738585072014e-308
  %enlarged = fmul contract double %x, 4503599627370496.0
  %scaled = select i1 %is_tiny, double %enlarged, double %x
  ; Adding bits(1) - bits(sqrt 1/2) carries into the exponent where the mantissa is at least sqrt 1/2.
  %bits = bitcast double %scaled to i64
  %raised = add i64 %bits, 2638147582215219
  %exponent = lshr i64 %raised, 52
  ; The integer in the low bits of 2**52 is added to it.
  %n.bits = or i64 %exponent, 4841369599423283200
  %n.raised = bitcast i64 %n.bits to double
  %zero = select i1 %is_tiny, double 4503599627371571.0, double 4503599627371519.0
  %n = fsub double %n.raised, %zero
  %mantissa = and i64 %raised, 4503599627370495
  %fraction.bits = add i64 %mantissa, 4604544271217802189
  %fraction = bitcast i64 %fraction.bits to double
  %f = fsub double %fraction, 1.0
  %result.0 = insertvalue { double, double } poison, double %n, 0
  %result = insertvalue { double, double } %result.0, double %f, 1
  ret { double, double } %result
}

; ln(1 + f) - f = s (h + z q(z)) - h with s = f / (2 + f), z = s**2 and h = f**2 / 2, for 1 + f in
; [sqrt 1/2, sqrt 2). Coefficients of fdlibm (Sun Microsystems).
define internal double @deplo_log_tail_f64(double %f) alwaysinline {
  %f.squared = fmul contract double %f, %f
  %two_more = fadd contract double %f, 2.0
  %s = fdiv double %f, %two_more
  %z = fmul contract double %s, %s
  %h = fmul contract double %f.squared, 0.5
  %q.5 = call double @llvm.fma.f64(double 0.14798198605116586, double %z, double 0.15313837699209373)
  %q.4 = call double @llvm.fma.f64(double %q.5, double %z, double 0.1818357216161805)
  %q.3 = call double @llvm.fma.f64(double %q.4, double %z, double 0.22222198432149784)
  %q.2 = call double @llvm.fma.f64(double %q.3, double %z, double 0.2857142874366239)
  %q.1 = call double @llvm.fma.f64(double %q.2, double %z, double 0.3999999999940942)
  %q = call double @llvm.fma.f64(double %q.1, double %z, double 0.6666666666666735)
  %series = fmul contract double %q, %z
  %sum = fadd contract double %h, %series
  %product = fmul contract double %s, %sum
  %result = fsub double %product, %h
  ret double %result
}

; The logarithm of x, given its value for positive numbers.
define internal double @deplo_log_edges_f64(double %x, double %result) alwaysinline {
  %is_zero = fcmp oeq double %x, 0.0
  %or_infinite = select i1 %is_zero, double 0xFFF0000000000000, double %result
  %is_negative = fcmp olt double %x, 0.0
  %or_nan = select i1 %is_negative, double 0x7FF8000000000000, double %or_infinite
  ; Infinity and NaN are their own logarithms.
  %is_below = fcmp ult double %x, 0x7FF0000000000000
  %is_nan = fcmp uno double %x, %x
  %or_same = select i1 %is_nan, double %x, double %or_nan
  %chosen = select i1 %is_below, double %or_same, double %x
  ret double %chosen
}

; ln x = n ln 2 + f + tail, in two parts of ln 2.
define internal double @deplo_log_f64(double %x) alwaysinline {
  %parts = call { double, double } @deplo_log_parts_f64(double %x)
  %n = extractvalue { double, double } %parts, 0
  %f = extractvalue { double, double } %parts, 1
  %tail = call double @deplo_log_tail_f64(double %f)
  %low = call double @llvm.fma.f64(double %n, double 5.497923018708371e-14, double %tail)
  %near = fadd contract double %f, %low
  %result = call double @llvm.fma.f64(double %n, double 0.6931471805598903, double %near)
  %chosen = call double @deplo_log_edges_f64(double %x, double %result)
  ret double %chosen
}

; ln(1 + x): the logarithm of the rounded sum u; what its rounding lost, over u, is added to the tail.
define internal double @deplo_log1p_f64(double %x) alwaysinline {
  %u = fadd contract double %x, 1.0
  %u.less = fsub double %u, 1.0
  %lost = fsub double %x, %u.less
  %parts = call { double, double } @deplo_log_parts_f64(double %u)
  %n = extractvalue { double, double } %parts, 0
  %f = extractvalue { double, double } %parts, 1
  %tail = call double @deplo_log_tail_f64(double %f)
  %correction = fdiv double %lost, %u
  %corrected = fadd contract double %tail, %correction
  %low = call double @llvm.fma.f64(double %n, double 5.497923018708371e-14, double %corrected)
  %near = fadd contract double %f, %low
  %result = call double @llvm.fma.f64(double %n, double 0.6931471805598903, double %near)
  %whole = call double @deplo_log_edges_f64(double %u, double %result)
  ; Below 2**-53 the result is x.
  %size = call double @llvm.fabs.f64(double %x)
  %is_tiny = fcmp olt double %size, 1.1102230246251565e-16
  %chosen = select i1 %is_tiny, double %x, double %whole
  ret double %chosen
}

; log2 x = n + (f + tail) log2 e, in two parts of log2 e.
define internal double @deplo_log2_f64(double %x) alwaysinline {
  %parts = call { double, double } @deplo_log_parts_f64(double %x)
  %n = extractvalue { double, double } %parts, 0
  %f = extractvalue { double, double } %parts, 1
  %tail = call double @deplo_log_tail_f64(double %f)
  %f.low = fmul contract double %f, 2.0355273740931033e-17
  %low = call double @llvm.fma.f64(double %tail, double 1.4426950408889634, double %f.low)
  %near = call double @llvm.fma.f64(double %f, double 1.4426950408889634, double %low)
  %result = fadd contract double %n, %near
  %chosen = call double @deplo_log_edges_f64(double %x, double %result)
  ret double %chosen
}

; log10 x = n log10 2 + (f + tail) log10 e, in two parts of each constant.
define internal double @deplo_log10_f64(double %x) alwaysinline {
  %parts = call { double, double } @deplo_log_parts_f64(double %x)
  %n = extractvalue { double, double } %parts, 0
  %f = extractvalue { double, double } %parts, 1
  %tail = call double @deplo_log_tail_f64(double %f)
  %f.low = fmul contract double %f, 1.098319650216765e-17
  %low = call double @llvm.fma.f64(double %tail, double 0.4342944819032518, double %f.low)
  %near = call double @llvm.fma.f64(double %f, double 0.4342944819032518, double %low)
  %n.low = call double @llvm.fma.f64(double %n, double 2.8363394551044964e-14, double %near)
  %result = call double @llvm.fma.f64(double %n, double 0.30102999566395283, double %n.low)
  %chosen = call double @deplo_log_edges_f64(double %x, double %result)
  ret double %chosen
}
