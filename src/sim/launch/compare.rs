//! Compares the buffers after a launch with the expected results.
//!
//! There is one [`Difference`] for each buffer that is not as expected, with the number of
//! differing elements and the first one. An input that the kernel changed and a buffer of the wrong
//! size are differences too, so nothing passes by omission.

use super::{Arg, ArgValue, ElementType, Expected, Launch, Tolerance};
use std::fmt;

/// What is wrong with an argument after a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// `count` of `total` elements differ, the first one at `index`; the texts show its value and
    /// bits.
    Elements { arg: usize, index: usize, expected: String, got: String, count: usize, total: usize },
    /// The argument came back as another kind or size: an error of the executor, not of the kernel.
    Shape { arg: usize, message: String },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Elements { arg, index, expected, got, count, total } => write!(
                f,
                "argument {arg}: {count} of {total} elements differ, first [{index}]: expected {expected}, got {got}"
            ),
            Difference::Shape { arg, message } => write!(f, "argument {arg}: {message}"),
        }
    }
}

impl Launch {
    /// Compares the arguments after the launch with the description.
    ///
    /// # Errors
    ///
    /// All differences, in argument order.
    pub fn check(&self, after: &[ArgValue]) -> Result<(), Vec<Difference>> {
        if after.len() != self.args.len() {
            let message = format!("{} arguments came back of {}", after.len(), self.args.len());
            return Err(vec![Difference::Shape { arg: after.len().min(self.args.len()), message }]);
        }
        let pairs = self.args.iter().zip(after).enumerate();
        let differences: Vec<_> =
            pairs.filter_map(|(arg, (before, after))| self.check_arg(arg, before, after)).collect();
        if differences.is_empty() { Ok(()) } else { Err(differences) }
    }

    fn check_arg(&self, arg: usize, before: &Arg, after: &ArgValue) -> Option<Difference> {
        let (ty, bytes, expect, got) = match (before, after.buffer()) {
            (Arg::Buffer { ty, bytes, expect, .. }, Some((got, _))) => (*ty, bytes, expect, got),
            (Arg::Scalar { .. } | Arg::Within { .. } | Arg::Struct { .. }, None) => return None,
            _ => return Some(Difference::Shape { arg, message: "a buffer and a scalar were confused".into() }),
        };
        if got.len() != bytes.len() {
            let message = format!("{} bytes came back of {}", got.len(), bytes.len());
            return Some(Difference::Shape { arg, message });
        }
        let unchanged: Vec<Expected>;
        let (expect, tolerance) = match expect {
            Some(expect) => (expect, before.tolerance().unwrap_or(self.tolerance)),
            None => {
                unchanged = bytes.chunks_exact(ty.size()).map(|b| Expected::Bits(ty.get(b))).collect();
                (&unchanged, Tolerance::Exact)
            }
        };
        first_difference(arg, ty, expect, got, tolerance)
    }
}

impl Arg {
    fn tolerance(&self) -> Option<Tolerance> {
        if let Arg::Buffer { tolerance, .. } = self { *tolerance } else { None }
    }
}

fn first_difference(
    arg: usize,
    ty: ElementType,
    expect: &[Expected],
    got: &[u8],
    tolerance: Tolerance,
) -> Option<Difference> {
    let elements = expect.iter().zip(got.chunks_exact(ty.size()).map(|b| ty.get(b))).enumerate();
    let mut wrong = elements.filter(|(_, (expected, got))| !agrees(ty, **expected, *got, tolerance));
    let (index, (expected, got)) = wrong.next()?;
    let expected = match expected {
        Expected::Bits(bits) => ty.show(*bits),
        Expected::Nan => "NaN".into(),
        Expected::Interpreter => "what the interpreter has not computed yet".into(),
    };
    let count = 1 + wrong.count();
    Some(Difference::Elements { arg, index, expected, got: ty.show(got), count, total: expect.len() })
}

fn agrees(ty: ElementType, expected: Expected, got: u64, tolerance: Tolerance) -> bool {
    let bits = match expected {
        Expected::Nan => return ty.float(got).is_nan(),
        Expected::Interpreter => return false,
        Expected::Bits(bits) => bits,
    };
    if bits == got {
        return true;
    }
    let (want, have) = (ty.float(bits), ty.float(got));
    if !ty.is_float() || want.is_nan() || have.is_nan() {
        return false;
    }
    match tolerance {
        Tolerance::Exact => false,
        Tolerance::Ulps(ulps) => ordered(ty, bits).abs_diff(ordered(ty, got)) <= ulps.into(),
        Tolerance::Abs(bound) => (want - have).abs() <= bound,
        Tolerance::Rel(bound) => (want - have).abs() <= bound * want.abs(),
        Tolerance::Close(rel, abs) => (want - have).abs() <= rel * want.abs() + abs,
    }
}

/// The rank of a float among all floats of its type: neighbours differ by one, both zeros are 0.
fn ordered(ty: ElementType, bits: u64) -> i128 {
    let sign = 1u64 << (8 * ty.size() - 1);
    let size = i128::from(bits & (sign - 1));
    if bits & sign == 0 { size } else { -size }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(ty: ElementType, tolerance: Tolerance, data: &[u64], expect: Option<&[Expected]>) -> Launch {
        let mut bytes = Vec::new();
        data.iter().for_each(|v| ty.put(*v, &mut bytes));
        let args = vec![Arg::Buffer { ty, bytes, expect: expect.map(<[_]>::to_vec), tolerance: None, parameter: true }];
        let (targets, symbols) = (Vec::new(), Vec::new());
        Launch { kernel: "k".into(), grid: [1; 3], block: [1; 3], smem: 0, tolerance, targets, symbols, args }
    }

    fn after(ty: ElementType, values: &[u64]) -> Vec<ArgValue> {
        let mut bytes = Vec::new();
        values.iter().for_each(|v| ty.put(*v, &mut bytes));
        vec![ArgValue::Buffer { bytes, writable: true }]
    }

    fn message(launch: &Launch, values: &[ArgValue]) -> String {
        launch.check(values).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn first_difference_and_count() {
        use Expected::Bits;
        let ty = ElementType::S32;
        let launch = launch(ty, Tolerance::Exact, &[0; 4], Some(&[Bits(1), Bits(2), Bits(3), Bits(4)]));
        assert_eq!(launch.check(&after(ty, &[1, 2, 3, 4])), Ok(()));
        assert_eq!(
            message(&launch, &after(ty, &[1, 0xffff_ffff, 3, 5])),
            "argument 0: 2 of 4 elements differ, first [1]: expected 2 (0x00000002), got -1 (0xffffffff)"
        );
        assert_eq!(message(&launch, &after(ty, &[1, 2])), "argument 0: 8 bytes came back of 16");
        assert_eq!(message(&launch, &[]), "argument 0: 0 arguments came back of 1");
        let scalar = [ArgValue::Scalar { bytes: vec![0] }];
        assert_eq!(message(&launch, &scalar), "argument 0: a buffer and a scalar were confused");
    }

    #[test]
    fn inputs_must_not_change() {
        let ty = ElementType::U8;
        let launch = launch(ty, Tolerance::Exact, &[7, 8], None);
        assert_eq!(launch.check(&after(ty, &[7, 8])), Ok(()));
        assert_eq!(
            message(&launch, &after(ty, &[7, 9])),
            "argument 0: 1 of 2 elements differ, first [1]: expected 8 (0x08), got 9 (0x09)"
        );
    }

    #[test]
    fn nans_by_class_and_zeros_by_bits() {
        let ty = ElementType::F32;
        let launch = launch(ty, Tolerance::Exact, &[0; 2], Some(&[Expected::Nan, Expected::Bits(0)]));
        assert_eq!(launch.check(&after(ty, &[0xffc0_0001, 0])), Ok(()));
        assert_eq!(
            message(&launch, &after(ty, &[0x7f80_0000, 0x8000_0000])),
            "argument 0: 2 of 2 elements differ, first [0]: expected NaN, got inf (0x7f800000)"
        );
    }

    #[test]
    fn tolerances() {
        let ty = ElementType::F32;
        let passes = |tolerance, expected: f32, got: f32| {
            let expect = [Expected::Bits(expected.to_bits().into())];
            launch(ty, tolerance, &[0], Some(&expect)).check(&after(ty, &[got.to_bits().into()])).is_ok()
        };
        let next = f32::from_bits(1.0f32.to_bits() + 1);
        assert!(!passes(Tolerance::Exact, 1.0, next));
        assert!(passes(Tolerance::Ulps(1), 1.0, next));
        assert!(passes(Tolerance::Ulps(2), f32::from_bits(1), -f32::from_bits(1)));
        assert!(!passes(Tolerance::Ulps(1), f32::from_bits(1), -f32::from_bits(1)));
        assert!(passes(Tolerance::Abs(0.5), 100.0, 100.5));
        assert!(!passes(Tolerance::Abs(0.5), 100.0, 101.0));
        assert!(passes(Tolerance::Rel(0.01), 100.0, 101.0));
        assert!(!passes(Tolerance::Rel(0.01), 1.0, 1.5));
        assert!(!passes(Tolerance::Abs(f64::INFINITY), 1.0, f32::NAN));
        assert!(passes(Tolerance::Close(0.01, 0.5), 100.0, 101.5));
        assert!(!passes(Tolerance::Close(0.01, 0.25), 100.0, 101.5));
    }

    #[test]
    fn an_arguments_own_tolerance_goes_first() {
        let ty = ElementType::F32;
        let bits = |v: f32| u64::from(v.to_bits());
        let mut launch = launch(ty, Tolerance::Exact, &[0], Some(&[Expected::Bits(bits(100.0))]));
        let Arg::Buffer { tolerance, .. } = &mut launch.args[0] else { panic!() };
        *tolerance = Some(Tolerance::Abs(1.0));
        assert_eq!(launch.check(&after(ty, &[bits(101.0)])), Ok(()));
        assert!(launch.check(&after(ty, &[bits(102.0)])).is_err());
    }

    #[test]
    fn the_interpreters_results_come_in() {
        let ty = ElementType::F32;
        let open =
            launch(ty, Tolerance::Exact, &[0; 3], Some(&[Expected::Interpreter, Expected::Nan, Expected::Bits(5)]));
        let values = after(ty, &[7, 0x7fff_ffff, 5]);
        assert!(
            message(&open, &values).contains("first [0]: expected what the interpreter has not computed yet, got ")
        );
        assert_eq!(open.expecting(&values).check(&values), Ok(()));
        assert!(open.expecting(&after(ty, &[8, 0, 9])).check(&values).is_err());
    }
}
