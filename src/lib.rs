//! Sassafras: an open compiler from PTX to SASS.
//!
//! It reads the PTX text that CUDA compilers write and produces the cubin that the CUDA driver
//! loads, for sm_75 to sm_121. What is not implemented is refused by name, with line and column.
//! The bytes of a cubin depend only on the text and the options. Facts about GPUs are in the tables
//! under `tables/`; [`tables`] is the only module that includes code generated from them.
//!
//! # Compiling
//!
//! [`compile()`] takes a PTX text and [`Options`] and returns an [`Output`]: the bytes of the
//! cubin, the resources of each function, and warnings. Threads may call it at the same time.
//!
//! ```
//! use sassafras::{Options, compile};
//!
//! let ptx = ".version 8.0 .target sm_80 .address_size 64 .visible .entry k() { ret; }";
//! let output = compile(ptx, &Options::new("sm_90")).expect("the text is valid PTX");
//! assert!(output.cubin.starts_with(b"\x7fELF"));
//! assert_eq!(output.functions[0].name, "k");
//! ```
//!
//! Options are public fields. An error is a list of [`Diagnostic`]s with the messages of ptxas and
//! their positions:
//!
//! ```
//! use sassafras::{Options, compile, diag::Pos};
//!
//! let mut options = Options::new("sm_90");
//! options.opt_level = 0;
//! let wrong = ".version 8.0 .target sm_80 .address_size 64 .visible .entry k() { rat; }";
//! let diagnostics = compile(wrong, &options).unwrap_err();
//! assert_eq!(diagnostics[0].message, "Not a name of any known instruction: 'rat'");
//! assert_eq!(diagnostics[0].pos, Some(Pos { line: 1, col: 67 }));
//! ```
//!
//! [`compile_all`] compiles several texts into one cubin, [`compile_bytes`] a text of unknown
//! encoding.
//!
//! # The flow
//!
//! ```text
//! PTX text ─ ptx ─→ module ─ helper, lower ─→ Ori ─ pass ─→ Ori, legal, in physical registers
//!          ─ pipeline, sass ─→ words ─ kernel_image, cubin ─→ ELF file
//! ```
//!
//! 1. [`ptx`] parses and checks the text; [`helper`] inlines calls of helper templates.
//! 2. [`lower`] selects instructions: each function becomes [`ori`], a machine-level IR with SASS
//!    opcodes over virtual registers.
//! 3. [`pass`] runs the passes of `tables/passes.ron` with cached analyses ([`analysis`]):
//!    optimizations ([`opt`]), divergence ([`uniform`]), legalization for the target ([`legal`]),
//!    reconvergence of lanes ([`reconverge`]), scheduling ([`sched`]), register allocation
//!    ([`alloc`]), control words ([`control`]).
//! 4. [`pipeline`] encodes instructions with [`sass`] and merges the code of functions;
//!    [`kernel_image`], [`references`] and [`cubin`] write the ELF file, with line tables from
//!    [`source_lines`].
//!
//! [`sim`] checks results: it interprets PTX and simulates SASS on the CPU. It shares the front
//! end, the decoder of [`sass`], the reader of [`cubin`] and the tables with the compiler, and no
//! code that transforms programs. [`search`] asks its time model which of several tunings is best,
//! [`bisect`] finds the pass that breaks a function, [`compare`] shows the code of two cubins side
//! by side, [`gpu`] runs cubins on a GPU, and [`cli`] is the command line in the words of ptxas.

pub mod alloc;
pub mod analysis;
mod arrays;
pub mod bisect;
pub mod cli;
pub mod compare;
pub mod compile;
pub mod control;
pub mod cubin;
mod debug;
pub mod diag;
pub mod gpu;
pub mod group;
pub mod helper;
pub mod interprocedural;
pub mod kernel_image;
pub mod legal;
pub mod lower;
pub mod opt;
pub mod ori;
pub mod pass;
pub mod pipeline;
pub mod ptx;
pub mod reconverge;
pub mod references;
pub mod sass;
pub mod sched;
pub mod search;
pub mod shader_info;
pub mod sim;
pub mod sorted;
pub mod source_lines;
pub mod tables;
mod threads;
pub mod uniform;
pub mod warnings;

pub use compile::{Options, Output, Resources, compile, compile_all, compile_bytes};
pub use diag::{Diagnostic, Severity};
