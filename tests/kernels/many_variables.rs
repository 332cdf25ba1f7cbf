//! More variables than a constant bank has addresses for: a loader writes the others' addresses
//! into the code.

use sassafras::compile::{Options, compile};
use sassafras::sim::launch::ArgValue;
use sassafras::sim::run::{Shape, run};
use sassafras::tables::elf::{ElfTarget, RelocRole, RelocRow};

/// Variables of the module: a bank of 64 KiB has 8,192 addresses.
const VARIABLES: u32 = 8_500;

/// An entry that folds the values of all variables, in order.
fn module() -> String {
    let mut text = String::from(".version 7.0\n.target sm_75\n.address_size 64\n");
    for i in 0..VARIABLES {
        text += &format!(".global .b32 g{i} = {};\n", 7 * i);
    }
    text += ".visible .entry k(.param .u64 out)\n{\n.reg .b32 r<3>;\n.reg .b64 d;\nld.param.u64 d, [out];\nmov.u32 r2, 0;\n";
    for i in 0..VARIABLES {
        text += &format!("ld.global.u32 r1, [g{i}];\nmad.lo.u32 r2, r2, 31, r1;\n");
    }
    text + "st.global.u32 [d], r2;\nret;\n}\n"
}

/// Every variable is read where the loader put it.
#[test]
fn each_of_many_variables_is_found() {
    let text = module();
    let right = (0..VARIABLES).fold(0u32, |sum, i| sum.wrapping_mul(31).wrapping_add(7 * i));
    for target in ["sm_75", "sm_90", "sm_120"] {
        let output = compile(&text, &Options::new(target)).unwrap();
        let cubin = sassafras::cubin::read(&output.cubin).unwrap();
        let elf = ElfTarget::of_sm(cubin.sm).unwrap();
        let low = RelocRow::for_role(RelocRole::AddressLow, elf.layout).unwrap().number;
        let relocs = &cubin.functions[0].code_relocs;
        assert!(relocs.iter().filter(|reloc| reloc.kind == low).count() > 300, "{target}");
        let mut values = [ArgValue::Buffer { bytes: vec![0; 4], writable: true }];
        run(&output.cubin, "k", Shape { grid: [1, 1, 1], block: [1, 1, 1], smem: 0 }, &mut values).unwrap();
        let [ArgValue::Buffer { bytes, .. }] = values else { panic!("the buffer is gone") };
        assert_eq!(bytes, right.to_le_bytes(), "{target}");
    }
}
