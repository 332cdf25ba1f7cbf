//! SSA form: one definition of each register, which dominates its uses; PHIs; tied old values.
//!
//! Registers with a physical number are reserved in the whole function and no values: neither their
//! definitions nor their uses are checked.

use super::describe;
use crate::ori::VReg;
use crate::ori::cfg::{Cfg, Dominators};
use crate::ori::function::{Block, File, Function, InstId};
use crate::ori::operand::{Kind, Operand};
use crate::tables::Op;
use crate::tables::ori::Direction;
use cranelift_entity::SecondaryMap;

/// Checks a function whose operands fit their roles: in SSA form all that the module's header
/// says, in another form that nothing of SSA form is left.
pub fn check(function: &Function, errors: &mut Vec<String>) {
    if !function.is_ssa() {
        return nothing_left(function, errors);
    }
    let cfg = Cfg::new(function);
    let values = Values { function, dominators: cfg.dominators(), place: definitions(function, &cfg, errors) };
    for block in &cfg.rpo {
        let mut phis_end = false;
        for (at, inst) in function[*block].iter().enumerate() {
            if function[*inst].op == Op::PHI {
                if phis_end {
                    errors.push(format!("{}: stands behind another instruction", describe(function, *inst)));
                }
                values.phi(*inst, &cfg.preds[*block], errors);
            } else {
                phis_end = true;
                values.uses(*inst, (*block, at), errors);
                tied(function, *inst, errors);
            }
        }
    }
}

/// Outside of SSA form there are neither PHIs nor tied old values.
fn nothing_left(function: &Function, errors: &mut Vec<String>) {
    for inst in function.layout().iter().flat_map(|block| &function[*block]) {
        if function[*inst].op == Op::PHI || !function.olds(*inst).is_empty() {
            errors.push(format!("{}: belongs to SSA form", describe(function, *inst)));
        }
    }
}

/// The place of an instruction: block, and index in it.
type Position = (Block, usize);

/// Where each register is defined.
fn definitions(function: &Function, cfg: &Cfg, errors: &mut Vec<String>) -> SecondaryMap<VReg, Option<Position>> {
    let mut place: SecondaryMap<VReg, Option<Position>> = SecondaryMap::new();
    for block in &cfg.rpo {
        for (at, inst) in function[*block].iter().enumerate() {
            function.for_each_def(*inst, |reg| {
                if function[reg].phys.is_none() && place[reg].replace((*block, at)).is_some() {
                    errors.push(format!("{}: {reg} has a second definition", describe(function, *inst)));
                }
            });
        }
    }
    place
}

/// The values of a function.
struct Values<'a> {
    function: &'a Function,
    dominators: Dominators,
    place: SecondaryMap<VReg, Option<Position>>,
}

impl Values<'_> {
    fn is_value(&self, reg: VReg) -> bool {
        self.function[reg].phys.is_none()
    }

    fn uses(&self, inst: InstId, at: Position, errors: &mut Vec<String>) {
        let reaches = |def: Position| if def.0 == at.0 { def.1 < at.1 } else { self.dominators.dominates(def.0, at.0) };
        self.function.for_each_use(inst, |reg| {
            if self.is_value(reg) && !self.place[reg].is_some_and(reaches) {
                errors.push(format!("{}: no definition of {reg} dominates it", describe(self.function, inst)));
            }
        });
    }

    /// A PHI has one register of its file for each predecessor, whose definition dominates the end
    /// of that predecessor.
    fn phi(&self, inst: InstId, preds: &[Block], errors: &mut Vec<String>) {
        let function = self.function;
        let mut wrong = |what: String| errors.push(format!("{}: {what}", describe(function, inst)));
        let args = function.args(inst);
        let Some(result) = args.first().and_then(|d| d.as_reg()) else { return wrong("has no result".into()) };
        if !function[inst].guard.is_null() || !function.olds(inst).is_empty() {
            wrong("a PHI has no guard and no old value".into());
        }
        let mut open: Vec<Block> = preds.to_vec();
        for pair in args[1..].chunks(2) {
            let (Kind::Label(pred), Some(value)) = (pair[0].kind(), pair.get(1).and_then(|v| v.as_reg())) else {
                wrong("an input is not a label and a register".into());
                continue;
            };
            let Some(at) = open.iter().position(|p| *p == pred) else {
                wrong(format!("{pred} is no predecessor, or has two inputs"));
                continue;
            };
            open.remove(at);
            if pair[1].plain() != pair[1] {
                wrong(format!("the input of {pred} has a sign"));
            }
            if function[value].file != function[result].file {
                wrong(format!("the input of {pred} is of another register file"));
            }
            let reaches = |def: Position| self.dominators.dominates(def.0, pred);
            if self.is_value(value) && !self.place[value].is_some_and(reaches) {
                wrong(format!("no definition of {value} dominates the end of {pred}"));
            }
        }
        open.iter().for_each(|pred| wrong(format!("has no input of {pred}")));
    }
}

/// A guarded instruction has, for each of its definitions, an old value of as many registers of the
/// same files; no other instruction has old values.
fn tied(function: &Function, inst: InstId, errors: &mut Vec<String>) {
    let olds = function.olds(inst);
    let guarded = !function[inst].guard.is_null();
    if olds.is_empty() && !guarded {
        return;
    }
    let files = |operand: Operand| {
        let mut files: Vec<File> = Vec::new();
        function.for_each_reg(operand, |reg| files.push(function[reg].file));
        files
    };
    let args = function.args(inst);
    let defs = (0..args.len()).filter(|at| function.direction(inst, *at) == Direction::Def).map(|at| args[at]);
    let defs: Vec<Operand> = defs.collect();
    let mut wrong = |what: &str| errors.push(format!("{}: {what}", describe(function, inst)));
    if !guarded {
        return wrong("has old values and no guard");
    }
    let values = |operand: &Operand| {
        let mut any = false;
        function.for_each_reg(*operand, |reg| any |= function[reg].phys.is_none());
        any
    };
    if olds.len() != defs.len() && (!olds.is_empty() || defs.iter().any(values)) {
        return wrong("has not one old value for each definition");
    }
    if olds.iter().zip(&defs).any(|(old, def)| values(def) && files(*old) != files(*def)) {
        wrong("an old value is not of the registers of its definition");
    }
}

#[cfg(test)]
mod tests {
    use crate::ori::{text, verify};

    const TEXT: &str = "function k sm_90 ssa
b0:
  UNDEF d=r9
  UNDEF d=r8
  ISETP{cmp=LT} pu=p1 a=r8 b=0xffffffff
  @!p1 BRA target=b2
  BRA target=b1
b1:
  @p1 IADD3 d=r2 a=-r9 b=0x10 c=Z pp=!Z old(r9 _ _)
  BRA target=b2
b2:
  PHI d=r7 b0=r9 b1=r2
  EXIT
";

    /// A replacement in a right function, and what the verifier says of the result.
    const WRONG: [(&str, &str, &str); 12] = [
        ("UNDEF d=r8", "UNDEF d=r9", "v9 has a second definition"),
        ("a=r8 b=0xffffffff", "a=r2 b=0xffffffff", "no definition of v2 dominates it"),
        ("PHI d=r7 b0=r9 b1=r2", "PHI d=r7 b0=r2 b1=r2", "no definition of v2 dominates the end of b0"),
        ("PHI d=r7 b0=r9 b1=r2", "PHI d=r7 b0=r9", "has no input of b1"),
        ("PHI d=r7 b0=r9 b1=r2", "PHI d=r7 b0=r9 b1=r2 b1=r9", "b1 is no predecessor, or has two inputs"),
        ("PHI d=r7 b0=r9 b1=r2", "PHI d=r7 b0=r9 b1=p1", "the input of b1 is of another register file"),
        ("PHI d=r7 b0=r9 b1=r2", "PHI d=r7 b0=r9 b1=-r2", "the input of b1 has a sign"),
        ("PHI d=r7 b0=r9 b1=r2", "PHI d=r7 b0=r9 b1=0x1", "an input is not a label and a register"),
        ("  PHI d=r7 b0=r9 b1=r2", "  UNDEF d=r3\n  PHI d=r7 b0=r9 b1=r2", "stands behind another instruction"),
        (" old(r9 _ _)", "", "has not one old value for each definition"),
        ("@p1 IADD3", "IADD3", "has old values and no guard"),
        (" old(r9 _ _)", " old(p1 _ _)", "an old value is not of the registers of its definition"),
    ];

    fn errors(text: &str) -> String {
        verify::verify(&text::parse(text).unwrap()).join("; ")
    }

    #[test]
    fn wrong_ssa_form_is_found() {
        assert_eq!(errors(TEXT), "");
        for (right, wrong, error) in WRONG {
            let found = errors(&TEXT.replace(right, wrong));
            assert!(found.contains(error), "{wrong}: {found}");
        }
    }

    #[test]
    fn nothing_of_ssa_form_is_left_outside_of_it() {
        let found = errors(&TEXT.replace(" ssa", ""));
        assert_eq!(found.matches("belongs to SSA form").count(), 2, "{found}");
    }

    #[test]
    fn an_instruction_has_one_place() {
        let mut function = text::parse(TEXT).unwrap();
        let (first, second) = (function.layout()[0], function.layout()[1]);
        let inst = function[first][0];
        function[second].insert(0, inst);
        function.place_blocks([second]);
        let found = verify::verify(&function).join("; ");
        assert!(
            found.contains("is in a second place, in b1") && found.contains("b1: is in the layout twice"),
            "{found}"
        );
    }
}
