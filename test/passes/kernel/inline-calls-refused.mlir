// RUN: deplo-opt %s -p inline-calls --split-input-file --verify-diagnostics

func.func @even(%a: f32) -> f32 {
  // expected-error@+1 {{@odd calls itself, so that its calls cannot be inlined}}
  %b = func.call @odd(%a) : (f32) -> f32
  func.return %b : f32
}
func.func @odd(%a: f32) -> f32 {
  %b = func.call @even(%a) : (f32) -> f32
  func.return %b : f32
}
