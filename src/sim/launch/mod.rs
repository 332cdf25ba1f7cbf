//! Launch descriptions: which kernel runs, over which grid, on which arguments, and what must come out.
//!
//! Input: a RON file beside a kernel (`load`), or the `--arg` texts of a command line (`command`). Output: arguments as
//! bytes ([`ArgValue`]) for whatever executes the kernel, and afterwards a comparison with the expected numbers
//! (`compare`). Invariant: a description that loads has as many expected elements as its buffer has, sizes that a launch
//! may have, and numbers that fit their type. Nothing here knows a machine; a GPU takes the same description.

use crate::tables::Target;
use serde::Deserialize;

mod command;
mod compare;
mod elements;
mod load;
mod place;
mod symbols;
mod values;

pub use command::{CommandArg, parse_command_arg, write_results};
pub use compare::Difference;
pub use load::{LaunchFile, LoadError};
pub use place::{Placed, place};
pub use values::ElementType;

/// An address in a structure: `at` so many bytes into it, that of a byte of an argument before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    pub at: usize,
    pub arg: usize,
    pub offset: u64,
}

/// An argument of a kernel as bytes, little-endian; the order is that of the kernel's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgValue {
    /// The parameter itself; as many bytes as the parameter has.
    Scalar { bytes: Vec<u8> },
    /// Global memory whose address is the parameter. The executor leaves what the kernel made of it in `bytes`;
    /// a kernel that stores into a buffer that is not `writable` has gone wrong.
    Buffer { bytes: Vec<u8>, writable: bool },
    /// An address so many bytes into the buffer that is argument number `arg` (from 0, before this one).
    Within { arg: usize, offset: u64 },
    /// A structure that is passed by value and holds addresses.
    Struct { bytes: Vec<u8>, addresses: Vec<Within> },
    /// Global memory like that of a buffer, which is no parameter: others point to it.
    Memory { bytes: Vec<u8>, writable: bool },
}

impl ArgValue {
    /// The bytes of what is global memory, and whether a kernel may store there.
    pub fn buffer(&self) -> Option<(&[u8], bool)> {
        match self {
            ArgValue::Buffer { bytes, writable } | ArgValue::Memory { bytes, writable } => Some((bytes, *writable)),
            _ => None,
        }
    }

    /// The same to be changed.
    pub fn buffer_mut(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            ArgValue::Buffer { bytes, .. } | ArgValue::Memory { bytes, .. } => Some(bytes),
            _ => None,
        }
    }
}

/// How far a floating-point result may be from the expected number. Integers and NaNs are always compared exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tolerance {
    /// Bit for bit; an expected `nan` stands for every NaN.
    #[default]
    Exact,
    /// So many representable numbers apart.
    Ulps(u64),
    /// |got - expected| at most this.
    Abs(f64),
    /// |got - expected| at most this times |expected|.
    Rel(f64),
    /// |got - expected| at most the first times |expected| plus the second.
    Close(f64, f64),
}

/// What one element of an output must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// These bits (the low bits, as many as the type has), within the tolerance.
    Bits(u64),
    /// Any NaN.
    Nan,
    /// What the PTX interpreter computes; [`Launch::expecting`] puts it in.
    Interpreter,
}

/// An argument of a description.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    Scalar {
        ty: ElementType,
        bytes: Vec<u8>,
    },
    /// `expect` is `None` for an input, which must come back unchanged. Its own tolerance goes before the launch's.
    Buffer {
        ty: ElementType,
        bytes: Vec<u8>,
        expect: Option<Vec<Expected>>,
        tolerance: Option<Tolerance>,
        /// Whether it is a parameter; else others point to it.
        parameter: bool,
    },
    /// A structure with addresses.
    Struct {
        bytes: Vec<u8>,
        addresses: Vec<Within>,
    },
    /// An address within the buffer of an argument before this one, so many bytes from its start.
    Within {
        arg: usize,
        offset: u64,
    },
}

/// What a variable of the module holds before the launch, as a host program would have copied it there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// One launch of one kernel. Sizes are in blocks and threads, x y z; `smem` is the dynamic shared memory in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    pub kernel: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub smem: u32,
    pub tolerance: Tolerance,
    /// Targets on which the kernel is launched; empty: on all that the module's own `.target` allows.
    pub targets: Vec<String>,
    pub symbols: Vec<Symbol>,
    pub args: Vec<Arg>,
}

impl LaunchFile {
    /// The name in the module's own `.target`.
    pub fn own_target(&self) -> Option<String> {
        let source = std::fs::read_to_string(&self.module).ok()?;
        let own = source.lines().find_map(|l| l.trim().strip_prefix(".target"))?;
        own.split([',', ' ', '\t']).find(|word| !word.is_empty()).map(str::to_string)
    }

    /// Whether the module's own `.target` allows a target.
    pub fn allows(&self, target: &str) -> bool {
        let own = self.own_target().and_then(|own| Target::by_name(&own));
        let other = Target::by_name(target);
        own.zip(other).is_none_or(|(own, other)| own.refused_on(other).is_none())
    }
}

impl Launch {
    /// Whether the kernel is launched on a target that its module allows.
    pub fn wants(&self, target: &str) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|name| name == target)
    }

    /// The arguments as they are before the launch. Buffers that the description only reads out start as 0xa5 in every
    /// byte, so that an element that was never written shows.
    pub fn arg_values(&self) -> Vec<ArgValue> {
        let value = |arg: &Arg| match arg {
            Arg::Scalar { bytes, .. } => ArgValue::Scalar { bytes: bytes.clone() },
            Arg::Buffer { bytes, expect, parameter, .. } => {
                let (bytes, writable) = (bytes.clone(), expect.is_some());
                if *parameter { ArgValue::Buffer { bytes, writable } } else { ArgValue::Memory { bytes, writable } }
            }
            Arg::Struct { bytes, addresses } => ArgValue::Struct { bytes: bytes.clone(), addresses: addresses.clone() },
            Arg::Within { arg, offset } => ArgValue::Within { arg: *arg, offset: *offset },
        };
        self.args.iter().map(value).collect()
    }

    /// The same launch with the interpreter's results in the places that ask for them.
    pub fn expecting(&self, interpreted: &[ArgValue]) -> Launch {
        let mut launch = self.clone();
        for (arg, value) in launch.args.iter_mut().zip(interpreted) {
            if let (Arg::Buffer { ty, expect: Some(expect), .. }, Some((bytes, _))) = (arg, value.buffer()) {
                let elements = bytes.chunks_exact(ty.size()).map(|b| ty.get(b));
                for (slot, bits) in expect.iter_mut().zip(elements).filter(|(slot, _)| **slot == Expected::Interpreter)
                {
                    let nan = ty.is_float() && ty.float(bits).is_nan();
                    *slot = if nan { Expected::Nan } else { Expected::Bits(bits) };
                }
            }
        }
        launch
    }
}
