//! Launch descriptions: which kernel runs with which grid and arguments, and which results are
//! expected.
//!
//! A description is read from a RON file beside the kernel (`load`) or from `--arg` texts on the
//! command line (`command`). It gives arguments as bytes ([`ArgValue`]) to any executor (the
//! simulator, the interpreter or a GPU) and compares the results afterwards (`compare`). A
//! description that loads has valid grid and block sizes, numbers that fit their types, and as many
//! expected elements as the buffer has.

use crate::sim::ops::texture::is_texture;
use crate::tables::Target;
use serde::Deserialize;

mod command;
mod compare;
mod elements;
mod load;
mod place;
mod symbols;
mod values;

pub use command::{CommandArg, parse_command_arg, parse_reference, write_results};
pub use compare::Difference;
pub use load::{LaunchFile, LoadError};
pub use place::{Placed, place};
pub use values::ElementType;

/// An address inside a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    /// The offset of the address in the structure, in bytes.
    pub at: usize,
    /// The argument that it points into, counted from 0.
    pub arg: usize,
    /// The offset in that argument's buffer, in bytes.
    pub offset: u64,
}

/// An argument of a kernel as little-endian bytes; arguments are in parameter order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgValue {
    /// The parameter itself, with the size of the parameter.
    Scalar { bytes: Vec<u8> },
    /// A buffer in global memory whose address is the parameter. After the run `bytes` holds what
    /// the kernel left there. A kernel must not store to a buffer that is not `writable`.
    Buffer { bytes: Vec<u8>, writable: bool },
    /// An address `offset` bytes into the buffer of argument `arg` (counted from 0, before this
    /// one).
    Within { arg: usize, offset: u64 },
    /// A structure passed by value that contains addresses.
    Struct { bytes: Vec<u8>, addresses: Vec<Within> },
    /// A buffer in global memory that is no parameter; other arguments point to it.
    Memory { bytes: Vec<u8>, writable: bool },
}

impl ArgValue {
    /// The contents of a buffer, and whether a kernel may store to it; `None` for other arguments.
    pub fn buffer(&self) -> Option<(&[u8], bool)> {
        match self {
            ArgValue::Buffer { bytes, writable } | ArgValue::Memory { bytes, writable } => Some((bytes, *writable)),
            _ => None,
        }
    }

    /// The contents of a buffer, mutable.
    pub fn buffer_mut(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            ArgValue::Buffer { bytes, .. } | ArgValue::Memory { bytes, .. } => Some(bytes),
            _ => None,
        }
    }
}

/// How far a floating-point result may be from the expected number. Integers and NaNs are compared
/// exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tolerance {
    /// Bit for bit; an expected `nan` matches every NaN.
    #[default]
    Exact,
    /// At most this many representable numbers apart.
    Ulps(u64),
    /// |got - expected| at most this.
    Abs(f64),
    /// |got - expected| at most this times |expected|.
    Rel(f64),
    /// |got - expected| at most the first times |expected| plus the second.
    Close(f64, f64),
}

/// The expected value of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// These bits (in the low end, as many as the type has), within the tolerance.
    Bits(u64),
    /// Any NaN.
    Nan,
    /// The result of the PTX interpreter, which [`Launch::expecting`] fills in.
    Interpreter,
}

/// An argument of a description.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    Scalar {
        ty: ElementType,
        bytes: Vec<u8>,
    },
    /// A buffer. `expect` is `None` for an input, which must stay unchanged. Its own tolerance
    /// overrides the launch's.
    Buffer {
        ty: ElementType,
        bytes: Vec<u8>,
        expect: Option<Vec<Expected>>,
        tolerance: Option<Tolerance>,
        /// Whether it is a parameter; otherwise other arguments point to it.
        parameter: bool,
    },
    /// A structure that contains addresses.
    Struct {
        bytes: Vec<u8>,
        addresses: Vec<Within>,
    },
    /// An address in the buffer of an earlier argument, as a byte offset from its start.
    Within {
        arg: usize,
        offset: u64,
    },
}

/// The contents of a module variable before the launch, as copied there by a host program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The variable's name.
    pub name: String,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// One launch of one kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// The kernel's name.
    pub kernel: String,
    /// Blocks in the grid, by axis.
    pub grid: [u32; 3],
    /// Threads in a block, by axis.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub smem: u32,
    /// The tolerance of outputs without one of their own.
    pub tolerance: Tolerance,
    /// Targets on which the kernel is launched; empty means all that the module's `.target` allows.
    pub targets: Vec<String>,
    /// Variables to fill before the launch.
    pub symbols: Vec<Symbol>,
    /// The kernel's arguments.
    pub args: Vec<Arg>,
}

impl LaunchFile {
    /// The target named by the module's `.target` directive.
    pub fn own_target(&self) -> Option<String> {
        let source = std::fs::read_to_string(&self.module).ok()?;
        let own = source.lines().find_map(|l| l.trim().strip_prefix(".target"))?;
        own.split([',', ' ', '\t']).find(|word| !word.is_empty()).map(str::to_string)
    }

    /// Whether the module's `.target` allows a target.
    pub fn allows(&self, target: &str) -> bool {
        let own = self.own_target().and_then(|own| Target::by_name(&own));
        let other = Target::by_name(target);
        own.zip(other).is_none_or(|(own, other)| own.refused_on(other).is_none())
    }
}

impl Launch {
    /// Whether the launch is meant for a target that its module allows.
    pub fn wants(&self, target: &str) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|name| name == target)
    }

    /// The arguments before the launch. Output buffers start with 0xa5 in every byte, so that an
    /// element that was never written is visible.
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

    /// Whether a buffer is a texture, of which only the interpreter and the simulator know the
    /// handle.
    pub fn has_textures(&self) -> bool {
        self.arg_values().iter().any(|value| value.buffer().is_some_and(|(bytes, _)| is_texture(bytes)))
    }

    /// The same launch with the interpreter's results where the description asks for them.
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
