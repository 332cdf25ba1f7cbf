//! The PTX interpreter as a judge of a cubin's results: bit for bit, except where the ISA allows a
//! tolerance.
//!
//! For a form and the memory left by the simulator and the interpreter, it returns the first
//! position where they differ by more than is allowed. Only results of approximate functions have
//! an error bound, and only 64-bit NaNs may have any payload.

use sassafras::ptx::ast::Module;
use sassafras::sim::fault::Fault;
use sassafras::sim::launch::ArgValue;
use sassafras::sim::run::Shape;

/// Location of the results of each kind after the inputs: first byte, bytes of one, count.
const SINGLES: (usize, usize, usize) = (48, 4, 4);
const DOUBLES: (usize, usize, usize) = (64, 8, 4);
const WORDS: (usize, usize, usize) = (0, 4, 4);
const HALVES: (usize, usize, usize) = (96, 2, 4);

/// Approximate operations: a part of the form's text, and the relative and absolute error bound
/// (PTX ISA 9.0, 9.7.3 and 9.7.4; division and others of 2 ulp: 2^-22).
const BOUNDS: [(&str, f64, f64); 20] = [
    ("div.full", 2.4e-7, 0.0),
    ("div.approx", 2.4e-7, 0.0),
    ("rcp.approx.ftz.f64", 1.2e-6, 0.0),
    ("rsqrt.approx.ftz.f64", 1.2e-6, 0.0),
    ("rsqrt.approx.f64", 1e-15, 0.0),
    ("rcp.approx", 1.2e-7, 0.0),
    ("rsqrt.approx", 2e-7, 0.0),
    ("sqrt.approx", 2e-7, 0.0),
    ("sin.approx", 0.0, 6.8e-7),
    ("cos.approx", 0.0, 6.8e-7),
    ("lg2.approx", 1.6e-7, 2.4e-7),
    ("ex2.approx.f32", 2.4e-7, 0.0),
    ("ex2.approx.ftz.f32", 2.4e-7, 0.0),
    ("ex2.approx.f16", 1.1e-3, 0.0),
    ("ex2.approx.atype", 1.1e-3, 0.0),
    ("ex2.approx.ftz.bf16", 7.9e-3, 0.0),
    ("tanh.approx.f32", 4.9e-4, 0.0),
    ("tanh.approx.f16", 5e-4, 0.0),
    ("tanh.approx.bf16", 3.9e-3, 0.0),
    ("atom.add.f32", 1.2e-7, 0.0),
];

/// Operations that may return any NaN for a NaN (PTX ISA 9.0, 9.7.3.11 and 9.7.3.12).
const UNSPECIFIED: [&str; 2] = ["abs.", "neg."];

/// Offset of a thread's first f32 input.
const FIRST_SINGLE: usize = 40;

/// The module of a text.
pub fn parsed(source: &str) -> Result<Module, Fault> {
    let (module, diagnostics) = sassafras::sim::ptx::parse(source.as_bytes());
    module.ok_or_else(|| Fault::new(format!("{diagnostics:?}")))
}

/// Runs a kernel of a module with one buffer.
pub fn interpret(module: &Module, kernel: &str, shape: Shape, input: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut values = [ArgValue::Buffer { bytes: input.to_vec(), writable: true }];
    sassafras::sim::ptx::run(module, kernel, shape, &mut values)?;
    match values {
        [ArgValue::Buffer { bytes, .. }] => Ok(bytes),
        _ => Err(Fault::new("the buffer is gone")),
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// The value of `bits` in a format of this width; 16 bits are f16 or bf16, depending on the form.
fn value(bits: u64, width: usize, bf16: bool) -> f64 {
    match width {
        8 => f64::from_bits(bits),
        4 => f32::from_bits(bits as u32).into(),
        _ if bf16 => f32::from_bits((bits as u32) << 16).into(),
        _ => {
            let sign = if bits & 0x8000 != 0 { -1.0 } else { 1.0 };
            let (exponent, fraction) = ((bits >> 10 & 31) as i32, (bits & 0x3ff) as f64);
            sign * match exponent {
                0 => fraction * 2f64.powi(-24),
                31 if fraction != 0.0 => f64::NAN,
                31 => f64::INFINITY,
                _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
            }
        }
    }
}

/// Whether two results of a form agree. `width` is the width of one result.
fn agree(form: &str, width: usize, a: u64, b: u64, input: f64) -> bool {
    if a == b {
        return true;
    }
    let bf16 = form.contains("bf16");
    let (x, y) = (value(a, width, bf16), value(b, width, bf16));
    let bound = BOUNDS.iter().find(|(text, ..)| form.contains(text));
    match bound {
        _ if width == 8 && x.is_nan() && y.is_nan() => true,
        Some(_) if x.is_nan() || y.is_nan() => x.is_nan() && y.is_nan(),
        None if x.is_nan() && y.is_nan() => UNSPECIFIED.iter().any(|text| form.starts_with(text)),
        Some((_, relative, absolute)) => {
            // An angle is reduced to one turn by a multiplication in f32 precision, truncated
            // towards zero.
            let turn = if form.starts_with("sin") || form.starts_with("cos") { input.abs() * 1.7e-7 } else { 0.0 };
            x == y || (x - y).abs() <= relative * y.abs() + absolute + turn + tiny(width, bf16)
        }
        None => false,
    }
}

/// Tolerance for flushed subnormals: approximate functions may flush.
fn tiny(width: usize, bf16: bool) -> f64 {
    if width == 4 || bf16 { f64::from(f32::MIN_POSITIVE) } else { 0.0 }
}

/// The first difference beyond the ISA's tolerance; `results` is the offset of the results in each
/// thread's `stride` bytes.
pub fn difference(form: &str, stride: usize, results: usize, machine: &[u8], interpreter: &[u8]) -> Option<String> {
    let approximate = BOUNDS.iter().any(|(text, ..)| form.contains(text));
    let halves = approximate && (form.contains("f16x2") || form.contains(".f16") || form.contains(".bf16"));
    for (thread, (m, i)) in machine.chunks(stride).zip(interpreter.chunks(stride)).enumerate() {
        let input = value(word(&m[FIRST_SINGLE..FIRST_SINGLE + 4]), 4, false);
        let mut at = 0;
        while at < stride {
            let inside = |(first, width, count): (usize, usize, usize)| {
                let start = results + first;
                (start..start + width * count).contains(&at).then_some(width)
            };
            let float = inside(SINGLES).or(inside(DOUBLES)).or(inside(HALVES));
            let packed = inside(WORDS).filter(|_| halves).map(|_| 2);
            let width = float.or(packed).unwrap_or(1).min(stride - at);
            let (a, b) = (word(&m[at..at + width]), word(&i[at..at + width]));
            if a != b && (width == 1 || !agree(form, width, a, b, input)) {
                return Some(format!("thread {thread} byte {at}: {a:#x}; the interpreter has {b:#x} (of {input:e})"));
            }
            at += width;
        }
    }
    None
}
