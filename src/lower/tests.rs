//! Small PTX texts and the Ori they become.

use super::{LoweredModule, lower};
use crate::diag::Diagnostic;
use crate::ori::{text, verify};
use crate::tables::Target;
use std::path::Path;

fn lowered(source: &str, target: &str) -> Result<LoweredModule, Vec<Diagnostic>> {
    let (module, diagnostics) = crate::ptx::parse(source);
    lower(&module.ok_or(diagnostics)?, Target::by_name(target).unwrap())
}

/// The first kernel, instruction by instruction.
#[test]
fn saxpy_on_sm_90() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/saxpy.ptx");
    let module = lowered(&std::fs::read_to_string(root).unwrap(), "sm_90").unwrap();
    let function = &module.functions[0];
    println!("{}", text::print(&function.function));
    assert_eq!(verify::verify(&function.function), Vec::<String>::new());
    let places: Vec<_> = function.params.iter().map(|p| (p.offset, p.size)).collect();
    assert_eq!(places, [(0, 4), (4, 4), (8, 8), (16, 8)]);
    let ops: Vec<&str> = function
        .function
        .layout
        .iter()
        .flat_map(|b| &function.function.blocks[*b])
        .map(|i| function.function.insts[*i].op.info().text)
        .collect();
    let expected = "ULDC LDC LDC LDC LDC S2R COPY LDC COPY S2R COPY IMAD ISETP EXIT COPY COPY IMAD.WIDE IADD3 IADD3 LDG COPY COPY IADD3 IADD3 LDG FFMA STG BRA EXIT";
    assert_eq!(ops.join(" "), expected);
}
