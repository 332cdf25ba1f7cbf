//! The programs of values that parameters, sizes of the launch and immediates alone make: one
//! forward sweep over the blocks in reverse postorder.
//!
//! Only instructions without a guard whose meaning is that of steps are taken; with any other
//! modifier or operand a value has no program.

use super::classes::{CLASSES, Leaf, RootClass, classify};
use crate::analysis::def_use::{is_free, is_pure};
use crate::arrays::Each;
use crate::ori::cfg::Cfg;
use crate::ori::{Function, InstId, Kind, Operand, VReg, table};
use crate::sorted::SortedSet;
use crate::tables::memory::{SpecialFrom, SpecialHome};
use crate::tables::patches::{FUNNEL, LONGEST, Program, Step, StepKind};
use crate::tables::ptx::SpecialRegister;
use crate::tables::{Mod, Op, Role, value};
use cranelift_entity::SecondaryMap;

/// The value of a register.
#[derive(Clone, Debug)]
pub struct Tree {
    pub program: Program,
    /// 1 for a leaf, and one more for each operation above it.
    pub depth: u32,
}

/// The values that have programs.
pub struct Trees {
    /// By register.
    of: SecondaryMap<VReg, Option<Tree>>,
    /// The instructions that make them.
    pub insts: SortedSet<InstId>,
    /// How many results each class of roots has.
    pub counts: [u32; CLASSES],
    leaves: Leaves,
}

/// What the words of bank 0 are.
struct Leaves {
    param_base: u32,
    param_bytes: u32,
    /// Offsets of the sizes of the launch, in the order of their numbers.
    sizes: Vec<(u32, u32)>,
}

impl Leaves {
    fn new(function: &Function, param_bytes: u32) -> Leaves {
        use SpecialRegister as S;
        let registers = [S::NtidX, S::NtidY, S::NtidZ, S::NctaidX, S::NctaidY, S::NctaidZ];
        let at = |register| {
            let home = SpecialHome::of(register, function.target().generation?)?;
            (home.from == SpecialFrom::Word && home.shift == 0 && home.mask == 0).then_some(home.at)
        };
        let sizes = (0..).zip(registers).filter_map(|(number, register)| Some((at(register)?, number))).collect();
        Leaves { param_base: function.target().info().map_or(0, |info| info.param_base), param_bytes, sizes }
    }

    fn at(&self, offset: u32) -> Option<Leaf> {
        let parameter = offset.checked_sub(self.param_base).filter(|at| at + 4 <= self.param_bytes && at % 4 == 0);
        let size = || self.sizes.iter().find(|(at, _)| *at == offset).map(|(_, number)| Leaf::Size(*number));
        parameter.map(Leaf::Parameter).or_else(size)
    }

    fn tree(&self, offset: u32) -> Option<Tree> {
        let program = match self.at(offset)? {
            Leaf::Parameter(at) => Program::of(StepKind::Param, at),
            Leaf::Size(number) => Program::of(StepKind::Launch, number),
        };
        Some(Tree { program, depth: 1 })
    }
}

impl Trees {
    /// Finds the programs of a function in SSA form.
    pub fn new(function: &Function, cfg: &Cfg, param_bytes: u32) -> Trees {
        let of = table(function.regs().len());
        let leaves = Leaves::new(function, param_bytes);
        let mut trees = Trees { of, insts: SortedSet::new(), counts: [0; CLASSES], leaves };
        for inst in cfg.rpo.iter().filter(|block| cfg.reachable(**block)).flat_map(|block| &function[*block]) {
            trees.visit(function, *inst);
        }
        trees
    }

    /// The value of a register.
    pub fn of(&self, reg: VReg) -> Option<&Tree> {
        self.of[reg].as_ref()
    }

    /// The class of an instruction.
    pub fn class(&self, function: &Function, inst: InstId) -> Option<RootClass> {
        classify(function, inst, |offset| self.leaves.at(offset))
    }

    fn visit(&mut self, function: &Function, inst: InstId) {
        let Some(class) = self.class(function, inst) else { return };
        self.counts[class as usize] += 1;
        if !function[inst].guard.is_null() || !(is_pure(function, inst) || function[inst].op == Op::LDC) {
            return;
        }
        let regs = results(function, inst);
        let Some(words) = self.words(function, inst) else { return };
        let fits = words.iter().all(|tree| tree.program.check(self.leaves.param_bytes).is_ok());
        if regs.len() != words.len() || !fits || !regs.iter().all(|reg| is_free(function, *reg)) {
            return;
        }
        regs.iter().zip(words).for_each(|(reg, tree)| self.of[*reg] = Some(tree));
        if let Some((carry, tree)) = self.carry(function, inst) {
            self.of[carry] = Some(tree);
        }
        self.insts.insert(inst);
    }

    /// The program of a one-word operand, or of a carry.
    fn operand(&self, function: &Function, operand: Operand) -> Option<Tree> {
        let word = |word| Tree { program: Program::of(StepKind::Word, word), depth: 0 };
        if operand.abs() {
            return None;
        }
        let plain = match operand.kind() {
            Kind::Zero | Kind::Imm(_) => return self.known(function, operand).map(word),
            Kind::Reg(reg) => self.of[reg].clone()?,
            Kind::Const { bank: 0, offset } => self.leaves.tree(offset.into())?,
            _ => return None,
        };
        Some(match (operand.neg(), operand.not()) {
            (false, false) => plain,
            (true, false) => {
                let not = apply(&[&plain], Step::plain(StepKind::Not));
                apply(&[&not, &word(1)], Step::plain(StepKind::Add))
            }
            (false, true) => apply(&[&plain], Step::plain(StepKind::Not)),
            (true, true) => return None,
        })
    }

    /// The value of an immediate or of the zero register.
    fn known(&self, function: &Function, operand: Operand) -> Option<u32> {
        let plain = function.word_value(operand.plain())?;
        match (operand.neg(), operand.not()) {
            (false, false) => Some(plain),
            (true, false) => Some(plain.wrapping_neg()),
            (false, true) => Some(!plain),
            (true, true) => None,
        }
    }

    /// The programs of the two words of an operand.
    fn pair(&self, function: &Function, operand: Operand) -> Option<[Tree; 2]> {
        if operand != operand.plain() {
            return None;
        }
        let words = match operand.kind() {
            Kind::Zero => [Operand::zero(); 2],
            Kind::Vector(vector) => match *function.vector_regs(vector) {
                [low, high] => [Operand::reg(low), Operand::reg(high)],
                _ => return None,
            },
            Kind::Const { bank: 0, offset } => [offset, offset.checked_add(4)?].each(|at| Operand::constant(0, at)),
            _ => return None,
        };
        Some([self.operand(function, words[0])?, self.operand(function, words[1])?])
    }

    /// The programs of the result words of an instruction.
    fn words(&self, function: &Function, inst: InstId) -> Option<Vec<Tree>> {
        let arg = |role| function.arg(inst, role);
        let tree = |role| self.operand(function, arg(role));
        let unset = |role| arg(role).is_null();
        let mods = &function[inst].mods;
        let only = |kinds: &[Mod]| mods.iter().all(|(kind, value)| value == 0 || kinds.contains(&kind));
        match function[inst].op {
            Op::LDC => self.load(function, inst),
            Op::MOV if only(&[]) && unset(Role::Lanes) => Some(vec![tree(Role::A)?]),
            Op::COPY if only(&[]) => Some(vec![tree(Role::A)?]),
            Op::IADD3 => {
                let [a, b, c] = self.terms(function, inst)?;
                let sum = add(&add(&a, &b), &c);
                match self.carry_in(function, inst)? {
                    Some(carry) => Some(vec![add(&sum, &carry)]),
                    None => Some(vec![sum]),
                }
            }
            Op::IMAD if only(&[Mod::Sign]) && unset(Role::Pu) && unset(Role::Pp) => {
                let product = apply(&[&tree(Role::A)?, &tree(Role::B)?], Step::plain(StepKind::Mul));
                Some(vec![add(&product, &tree(Role::C)?)])
            }
            Op::IMAD_WIDE if only(&[Mod::Sign]) && unset(Role::Pu) && unset(Role::Pp) => self.wide(function, inst),
            Op::IDIV if only(&[Mod::Sign]) => {
                let unsigned = mods.get(Mod::Sign) == value::sign::U32;
                let kind = if unsigned { StepKind::DivU } else { StepKind::DivS };
                Some(vec![apply(&[&tree(Role::A)?, &tree(Role::B)?], Step::plain(kind))])
            }
            Op::LOP3 if only(&[]) && unset(Role::Pu) && unset(Role::Pp) => {
                let operand = function.imm_value(arg(Role::Lut))? as u32 & 0xff;
                let step = Step { kind: StepKind::Logic, operand };
                Some(vec![apply(&[&tree(Role::A)?, &tree(Role::B)?, &tree(Role::C)?], step)])
            }
            Op::SHF if only(&[Mod::Dir, Mod::Wrap, Mod::Itype, Mod::Hi]) => {
                let step = Step { kind: StepKind::Funnel, operand: shift_bits(function, inst)? };
                Some(vec![apply(&[&tree(Role::A)?, &tree(Role::B)?, &tree(Role::C)?], step)])
            }
            _ => None,
        }
    }

    /// A load of one or two words at a fixed address of bank 0.
    fn load(&self, function: &Function, inst: InstId) -> Option<Vec<Tree>> {
        let mods = &function[inst].mods;
        let fixed = matches!(function.arg(inst, Role::A).kind(), Kind::Null | Kind::Zero);
        let Kind::Const { bank: 0, offset } = function.arg(inst, Role::C).kind() else { return None };
        if !fixed || !mods.iter().all(|(kind, value)| value == 0 || kind == Mod::Size) {
            return None;
        }
        let count = match mods.get(Mod::Size) {
            value::size::NONE => 1,
            value::size::_64 => 2,
            _ => return None,
        };
        (0..count).map(|word| self.leaves.tree(u32::from(offset) + 4 * word)).collect()
    }

    /// The terms of a sum of words.
    fn terms(&self, function: &Function, inst: InstId) -> Option<[Tree; 3]> {
        let term = |role| self.operand(function, function.arg(inst, role));
        Some([term(Role::A)?, term(Role::B)?, term(Role::C)?])
    }

    /// The carry that a sum takes, if it takes one; `None` if it cannot be computed. One term at
    /// most may be negated where there is none, and none where there is.
    fn carry_in(&self, function: &Function, inst: InstId) -> Option<Option<Tree>> {
        let (data, arg) = (&function[inst], |role| function.arg(inst, role));
        let rest = data.mods.iter().all(|(kind, value)| value == 0 || kind == Mod::X);
        if !rest || !arg(Role::Pv).is_null() {
            return None;
        }
        if data.mods.get(Mod::X) != value::x::X {
            let none = arg(Role::Pp).is_null() && arg(Role::Pq).is_null();
            return none.then_some(None);
        }
        let plain = [Role::A, Role::B, Role::C].each(arg).iter().all(|term| !term.neg() && !term.not());
        let second = arg(Role::Pq).is_null() || arg(Role::Pq) == Operand::never();
        if !plain || !second {
            return None;
        }
        let carry = arg(Role::Pp);
        if carry == Operand::never() {
            return Some(None);
        }
        let reg = carry.as_reg().filter(|_| carry == carry.plain())?;
        Some(Some(self.of[reg].clone()?))
    }

    /// The carry of a sum of two plain words.
    fn carry(&self, function: &Function, inst: InstId) -> Option<(VReg, Tree)> {
        let arg = |role| function.arg(inst, role);
        let carry = arg(Role::Pu).as_reg().filter(|_| function[inst].op == Op::IADD3)?;
        let terms = [Role::A, Role::B, Role::C].each(arg);
        if terms.iter().any(|term| term.neg() || term.not()) || function.word_value(terms[2]) != Some(0) {
            return None;
        }
        let [a, b, zero] = self.terms(function, inst)?;
        let into = self.carry_in(function, inst)?.unwrap_or(zero);
        let tree = apply(&[&a, &b, &into], Step::plain(StepKind::Carry));
        tree.program.check(self.leaves.param_bytes).is_ok().then_some((carry, tree))
    }

    /// A product of two words and a sum of two words each.
    fn wide(&self, function: &Function, inst: InstId) -> Option<Vec<Tree>> {
        let (x, y) = (function.arg(inst, Role::A), function.arg(inst, Role::B));
        if x.neg() || y.neg() {
            return None;
        }
        let (a, b) = (self.operand(function, x)?, self.operand(function, y)?);
        let [low, high] = self.pair(function, function.arg(inst, Role::C))?;
        let unsigned = function[inst].mods.get(Mod::Sign) == value::sign::U32;
        let kind = if unsigned { StepKind::MulHighU } else { StepKind::MulHighS };
        let product = [StepKind::Mul, kind].each(|kind| apply(&[&a, &b], Step::plain(kind)));
        let none = Tree { program: Program::of(StepKind::Word, 0), depth: 0 };
        let carry = if is_zero(&low) { none } else { apply(&[&product[0], &low, &none], Step::plain(StepKind::Carry)) };
        Some(vec![add(&product[0], &low), add(&add(&product[1], &high), &carry)])
    }
}

/// The registers of the result `d`.
pub fn results(function: &Function, inst: InstId) -> Vec<VReg> {
    match function.arg(inst, Role::D).kind() {
        Kind::Reg(reg) => vec![reg],
        Kind::Vector(vector) => function.vector_regs(vector).to_vec(),
        _ => Vec::new(),
    }
}

/// The operand of the step of a funnel shift.
fn shift_bits(function: &Function, inst: InstId) -> Option<u32> {
    let mods = &function[inst].mods;
    let (signed, wide) = match mods.get(Mod::Itype) {
        value::itype::U32 => (false, false),
        value::itype::S32 => (true, false),
        value::itype::U64 => (false, true),
        value::itype::S64 => (true, true),
        _ => return None,
    };
    let right = mods.get(Mod::Dir) == value::dir::R;
    let wraps = mods.get(Mod::Wrap) == value::wrap::W;
    let high = mods.get(Mod::Hi) == value::hi::HI;
    let bits = [right, signed, wide, wraps, high];
    Some(bits.iter().zip(FUNNEL).filter(|(set, _)| **set).map(|(_, bit)| bit).sum())
}

fn is_zero(tree: &Tree) -> bool {
    tree.program == Program::of(StepKind::Word, 0)
}

/// A sum, which has no step if a term is zero.
fn add(a: &Tree, b: &Tree) -> Tree {
    match (is_zero(a), is_zero(b)) {
        (_, true) => a.clone(),
        (true, _) => b.clone(),
        _ => apply(&[a, b], Step::plain(StepKind::Add)),
    }
}

/// A step over values. Beyond the longest program it no longer grows, so that it is refused.
fn apply(parts: &[&Tree], step: Step) -> Tree {
    let depth = parts.iter().map(|part| part.depth).max().unwrap_or(0) + 1;
    let length: usize = parts.iter().map(|part| part.program.0.len()).sum();
    if length > LONGEST {
        return Tree { program: Program::default(), depth };
    }
    let programs: Vec<&Program> = parts.iter().map(|part| &part.program).collect();
    Tree { program: Program::apply(&programs, step), depth }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::text;

    #[test]
    fn one_sweep_counts_the_roots_of_each_class() {
        let function = text::parse(
            "function k sm_80 ssa\nb0:\n  LDC{size=64} d={r0,r1} c=c[0][0x160]\n  LDC d=r2 c=c[0][0x4]\n\
             \x20 LDC d=r3 c=c[0][0x168]\n  MOV d=r4 a=0x7\n  IADD3 d=r5 a=r0 b=r4 c=Z\n  IMAD d=r6 a=r0 b=r2 c=r5\n\
             \x20 IDIV d=r7 a=r0 b=r3\n  LOP3 d=r8 a=r6 b=r0 c=Z lut=0x3c\n  SHF d=r9 a=r8 b=0x2 c=Z\n\
             \x20 @p11 IADD3 d=r10 a=r0 b=r1 c=Z\n  EXIT\n",
        );
        let function = function.unwrap();
        let trees = Trees::new(&function, &Cfg::new(&function), 8);
        assert_eq!(trees.counts, [1, 1, 1, 1, 2, 2, 1, 1]);
        let program = |reg| trees.of(VReg::from_u32(reg)).map(|tree| tree.program.to_string());
        // A load behind the parameters, what is made of it, and a guarded value have no program.
        assert_eq!([3, 7, 10].map(program), [None, None, None]);
        assert_eq!(program(6).unwrap(), "param:0.launch:1.mul.param:0.word:7.add.add");
    }
}
