//! Recipes of operand legalization, and the moves that materialize a value in a register.

use super::{Mod, Op, Role};

/// The seven categories of operand recipes. Source: seed 003, operand legalization dispatcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// A fixed list of operands.
    A,
    /// Operands whose width depends on the instruction.
    B,
    /// Delegated to the backend's hook.
    C,
    /// The opcode itself is rewritten.
    D,
    /// Optional operands.
    E,
    /// An access to memory.
    F,
    /// No operand needs legalization.
    G,
}

/// The six ways to materialize an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Material {
    /// A general register, unless the operand is encodable.
    Mat,
    /// Like `Mat`, but inlined with higher priority.
    Try,
    /// A register of another file, or a special register: unchanged.
    Special,
    /// An immediate whose width depends on the target.
    Arch,
    /// A predicate in the file that the encoding requires.
    Pred,
    /// A uniform register.
    Uniform,
}

/// A rewrite that makes operands encodable without a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// Swap two operands.
    Swap,
    /// Swap two operands and permute the truth table.
    Table,
    /// Swap two operands and mirror the comparison.
    Mirror,
    /// Swap two operands and invert the predicate.
    Select,
    /// Flip both signs.
    Sign,
    /// A uniform register that is a whole address goes to its own operand.
    Base,
}

/// One step of a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub by: Material,
    pub role: Role,
    /// Applies to all words of the operand.
    pub many: bool,
    /// Applies only if the instruction has the operand.
    pub optional: bool,
}

/// A recipe. Source: `ori/recipes.ron`.
#[derive(Debug, PartialEq)]
pub struct RecipeInfo {
    pub name: &'static str,
    pub category: Category,
    /// The backend hook that decides whether the steps apply.
    pub hook: Option<Hook>,
    /// Destination and source of a move that may change its opcode.
    pub moves: Option<(Role, Role)>,
    pub steps: &'static [Step],
    /// Rewrites that may precede the moves.
    pub exchanges: &'static [(Exchange, &'static [Role])],
}

/// The kind of a value before it is materialized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Imm,
    Zero,
    Const,
    Special,
    R,
    UR,
    P,
    UP,
}

/// The value of one operand of a materializing move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    To,
    From,
    NotFrom,
    True,
    False,
    Zero,
    Number(u32),
}

/// How a value moves into a register file. Source: `ori/moves.ron`.
#[derive(Debug)]
pub struct MoveInfo {
    /// Name of the register file.
    pub to: &'static str,
    pub from: Origin,
    pub op: Op,
    /// Modifiers of the move.
    pub mods: &'static [(Mod, u8)],
    /// Value of each role of the move.
    pub args: &'static [(Role, Part)],
}

impl Op {
    /// How operand legalization treats its operands.
    pub fn recipe(self) -> &'static RecipeInfo {
        &RECIPES[self.info().recipe]
    }
}

include!(concat!(env!("OUT_DIR"), "/operands.rs"));
