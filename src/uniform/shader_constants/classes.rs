//! The classes of roots, and the bank of each.

use crate::ori::{Function, InstId, Kind};
use crate::tables::{Op, Role};

/// What an instruction is as the root of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootClass {
    ParameterLoad,
    LaunchLoad,
    DescriptorLoad,
    Immediate,
    Sum,
    Product,
    Logic,
    Shift,
}

/// The number of classes.
pub const CLASSES: usize = 8;

/// The three banks that a host may patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BankClass {
    /// c\[0\], which the driver fills.
    Launch,
    /// c\[2\], which the cubin brings with it.
    Compiler,
}

/// For each class: the bank of its values, and whether it is extracted. A leaf is an operand as it
/// is, and stays where it is.
const ROWS: [(RootClass, BankClass, bool); CLASSES] = [
    (RootClass::ParameterLoad, BankClass::Launch, false),
    (RootClass::LaunchLoad, BankClass::Launch, false),
    (RootClass::DescriptorLoad, BankClass::Launch, false),
    (RootClass::Immediate, BankClass::Launch, false),
    (RootClass::Sum, BankClass::Compiler, true),
    (RootClass::Product, BankClass::Compiler, true),
    (RootClass::Logic, BankClass::Compiler, true),
    (RootClass::Shift, BankClass::Compiler, true),
];

impl RootClass {
    /// The bank of its values.
    pub fn bank(self) -> BankClass {
        ROWS[self as usize].1
    }

    /// Whether its values are extracted.
    pub fn is_extracted(self) -> bool {
        ROWS[self as usize].2
    }
}

/// Where a word of bank 0 comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    Parameter(u32),
    Size(u32),
}

/// The class of an instruction; `None` if it is no root. `leaf` says what a word of bank 0 is.
pub fn classify(function: &Function, inst: InstId, leaf: impl Fn(u32) -> Option<Leaf>) -> Option<RootClass> {
    Some(match function[inst].op {
        Op::LDC => match function.arg(inst, Role::C).kind() {
            Kind::Const { bank: 0, offset } => match leaf(offset.into()) {
                Some(Leaf::Parameter(_)) => RootClass::ParameterLoad,
                Some(Leaf::Size(_)) => RootClass::LaunchLoad,
                None => RootClass::DescriptorLoad,
            },
            _ => return None,
        },
        Op::MOV | Op::COPY => RootClass::Immediate,
        Op::IADD3 | Op::LEA => RootClass::Sum,
        Op::IMAD | Op::IMAD_WIDE | Op::IDIV => RootClass::Product,
        Op::LOP3 => RootClass::Logic,
        Op::SHF => RootClass::Shift,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_classes() {
        assert!(ROWS.iter().enumerate().all(|(i, row)| row.0 as usize == i));
        assert!(ROWS.iter().all(|row| row.2 == (row.1 == BankClass::Compiler)));
    }
}
