; atan, atan2, asin and acos of f32, within 2 units in the last place.
;
; Coefficients minimise the greatest relative error.

declare float @llvm.copysign.f32(float, float)
declare float @llvm.fabs.f32(float)
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.sqrt.f32(float)

; base + arc + tail for the f32 nearest to a multiple of pi / 2, and a small tail: the bits of the multiple that
; f32 lacks are added to the tail.
define internal float @deplo_add_arc_f32(float %base, float %arc, float %tail) alwaysinline {
  %corrected = call float @llvm.fma.f32(float %base, float -2.7827534054836178e-08, float %tail)  ; (pi - its nearest f32) / pi
  %sum = fadd contract float %arc, %corrected
  %result = fadd contract float %base, %sum
  ret float %result
}

; atan t - t for |t| <= 1.
define internal float @deplo_atan_tail_f32(float %t) alwaysinline {
  %squared = fmul contract float %t, %t
  ; (atan t - t) / t**3 in t**2
  %q.7 = call float @llvm.fma.f32(float -0.0017936211079359055, float %squared, float 0.010914603248238564)
  %q.6 = call float @llvm.fma.f32(float %q.7, float %squared, float -0.031177841126918793)
  %q.5 = call float @llvm.fma.f32(float %q.6, float %squared, float 0.057957589626312256)
  %q.4 = call float @llvm.fma.f32(float %q.5, float %squared, float -0.0840345025062561)
  %q.3 = call float @llvm.fma.f32(float %q.4, float %squared, float 0.10952185839414597)
  %q.2 = call float @llvm.fma.f32(float %q.3, float %squared, float -0.14264242351055145)
  %q.1 = call float @llvm.fma.f32(float %q.2, float %squared, float 0.19998548924922943)
  %q = call float @llvm.fma.f32(float %q.1, float %squared, float -0.33333298563957214)
  %q.squared = fmul contract float %q, %squared
  %result = fmul contract float %q.squared, %t
  ret float %result
}

; atan x: that of |x| up to 1, else pi / 2 less that of 1 / |x|, with the sign of x.
define internal float @deplo_atan_f32(float %x) alwaysinline {
  %size = call float @llvm.fabs.f32(float %x)
  %is_far = fcmp ogt float %size, 1.0
  %above = select i1 %is_far, float -1.0, float %size
  %below = select i1 %is_far, float %size, float 1.0
  %t = fdiv float %above, %below
  %base = select i1 %is_far, float 1.5707963705062866, float 0.0
  %tail = call float @deplo_atan_tail_f32(float %t)
  %result = call float @deplo_add_arc_f32(float %base, float %t, float %tail)
  %signed = call float @llvm.copysign.f32(float %result, float %x)
  ret float %signed
}

; The angle of the point (x, y): the arc of the smaller over the larger size, in the octant of the point.
define internal float @deplo_atan2_f32(float %y, float %x) alwaysinline {
  %height = call float @llvm.fabs.f32(float %y)
  %width = call float @llvm.fabs.f32(float %x)
  %is_steep = fcmp ogt float %height, %width
  %small = select i1 %is_steep, float %width, float %height
  %large = select i1 %is_steep, float %height, float %width
  ; Two zeros or two infinities have no quotient.
  %is_zero = fcmp oeq float %large, 0.0
  %same = select i1 %is_zero, float 0.0, float 1.0
  %is_same = fcmp oeq float %small, %large
  %quotient = fdiv float %small, %large
  %slope = select i1 %is_same, float %same, float %quotient
  %bits = bitcast float %x to i32
  %is_left = icmp slt i32 %bits, 0  ; also -0
  %half_turn = select i1 %is_left, float 3.1415927410125732, float 0.0
  %base = select i1 %is_steep, float 1.5707963705062866, float %half_turn
  %is_backward = xor i1 %is_steep, %is_left
  %negative = fneg float %slope
  %t = select i1 %is_backward, float %negative, float %slope
  %tail = call float @deplo_atan_tail_f32(float %t)
  %result = call float @deplo_add_arc_f32(float %base, float %t, float %tail)
  %signed = call float @llvm.copysign.f32(float %result, float %y)
  ret float %signed
}

; Whether size > 1/2; s, which is size, or sqrt((1 - size) / 2) if it is; and asin s - s.
define internal { i1, float, float } @deplo_asin_parts_f32(float %size) alwaysinline {
  %is_far = fcmp ogt float %size, 0.5
  %rest = fsub float 1.0, %size
  %halved = fmul contract float %rest, 0.5
  %size.squared = fmul contract float %size, %size
  %squared = select i1 %is_far, float %halved, float %size.squared
  %root = call float @llvm.sqrt.f32(float %squared)
  %s = select i1 %is_far, float %root, float %size
  ; (asin s - s) / s**3 in s**2 for |s| <= 1/2
  %q.3 = call float @llvm.fma.f32(float 0.042166244238615036, float %squared, float 0.024179549887776375)
  %q.2 = call float @llvm.fma.f32(float %q.3, float %squared, float 0.04547037184238434)
  %q.1 = call float @llvm.fma.f32(float %q.2, float %squared, float 0.07495297491550446)
  %q = call float @llvm.fma.f32(float %q.1, float %squared, float 0.16666752099990845)
  %q.squared = fmul contract float %q, %squared
  %tail = fmul contract float %q.squared, %s
  %result.0 = insertvalue { i1, float, float } poison, i1 %is_far, 0
  %result.1 = insertvalue { i1, float, float } %result.0, float %s, 1
  %result = insertvalue { i1, float, float } %result.1, float %tail, 2
  ret { i1, float, float } %result
}

; asin x: that of |x| up to 1/2, else pi / 2 - 2 asin sqrt((1 - |x|) / 2), with the sign of x.
define internal float @deplo_asin_f32(float %x) alwaysinline {
  %size = call float @llvm.fabs.f32(float %x)
  %parts = call { i1, float, float } @deplo_asin_parts_f32(float %size)
  %is_far = extractvalue { i1, float, float } %parts, 0
  %s = extractvalue { i1, float, float } %parts, 1
  %s.tail = extractvalue { i1, float, float } %parts, 2
  %factor = select i1 %is_far, float -2.0, float 1.0
  %base = select i1 %is_far, float 1.5707963705062866, float 0.0
  %arc = fmul contract float %factor, %s
  %tail = fmul contract float %factor, %s.tail
  %result = call float @deplo_add_arc_f32(float %base, float %arc, float %tail)
  %signed = call float @llvm.copysign.f32(float %result, float %x)
  ret float %signed
}

; acos x: pi / 2 - asin x for |x| up to 1/2, else 2 asin sqrt((1 - |x|) / 2), or pi less that for negative x.
define internal float @deplo_acos_f32(float %x) alwaysinline {
  %size = call float @llvm.fabs.f32(float %x)
  %parts = call { i1, float, float } @deplo_asin_parts_f32(float %size)
  %is_far = extractvalue { i1, float, float } %parts, 0
  %s = extractvalue { i1, float, float } %parts, 1
  %s.tail = extractvalue { i1, float, float } %parts, 2
  %factor.size = select i1 %is_far, float 2.0, float 1.0
  %factor.signed = call float @llvm.copysign.f32(float %factor.size, float %x)
  %factor.negative = fneg float %factor.signed
  %factor = select i1 %is_far, float %factor.signed, float %factor.negative
  %is_left = fcmp olt float %x, 0.0
  %half_turn = select i1 %is_left, float 3.1415927410125732, float 0.0
  %base = select i1 %is_far, float %half_turn, float 1.5707963705062866
  %arc = fmul contract float %factor, %s
  %tail = fmul contract float %factor, %s.tail
  %result = call float @deplo_add_arc_f32(float %base, float %arc, float %tail)
  ret float %result
}
