//! Sassafras: an open compiler from PTX to SASS.
//!
//! The flow: PTX text → [`ptx`] → Ori (the IR) → phases → SASS words → cubin. Beside it, and independent of it, stands
//! `sim`, a machine that executes the finished bytes. Every fact about a GPU comes from the tables under `tables/`
//! through [`tables`], the only module that includes generated code.
//!
//! A call is [`compile()`]; threads may call it at the same time:
//!
//! ```
//! let ptx = ".version 8.0 .target sm_80 .address_size 64 .visible .entry k() { ret; }";
//! let output = sassafras::compile(ptx, &sassafras::Options::new("sm_90")).expect("it is right");
//! assert!(output.cubin.starts_with(b"\x7fELF"));
//! assert_eq!(output.functions[0].name, "k");
//!
//! let wrong = ptx.replace("ret", "rat");
//! let diagnostics = sassafras::compile(&wrong, &sassafras::Options::new("sm_90")).unwrap_err();
//! assert_eq!(diagnostics[0].message, "Not a name of any known instruction: 'rat'");
//! assert_eq!(diagnostics[0].pos, Some(sassafras::diag::Pos { line: 1, col: 67 }));
//! ```

pub mod alloc;
pub mod analysis;
pub mod assemble;
pub mod bisect;
pub mod cli;
pub mod compile;
pub mod cubin;
pub mod diag;
pub mod gpu;
pub mod helper;
pub mod legal;
pub mod lower;
pub mod opt;
pub mod ori;
pub mod pass;
pub mod pipeline;
pub mod ptx;
pub mod remarks;
pub mod sass;
pub mod sched;
pub mod sim;
pub mod source_lines;
pub mod tables;
pub mod uniform;

pub use compile::{Options, Output, Resources, compile, compile_all, compile_bytes};
pub use diag::{Diagnostic, Severity};
