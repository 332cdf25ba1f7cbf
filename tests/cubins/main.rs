//! The ELF file: attributes, symbols, line tables, debug information, linking, `-v`.

mod calls;
mod cubin;
mod cubin_support;
mod debug;
mod initializers;
mod limits;
mod lines;
mod linking;
mod oracle_attributes;
mod oracle_eiattr;
mod records;
mod verbose;

#[allow(dead_code)]
#[path = "../support/ptxas.rs"]
mod ptxas;
#[allow(dead_code)]
#[path = "../support/turns.rs"]
mod turns;
#[allow(dead_code)]
#[path = "../support/vendor.rs"]
mod vendor;
