//! Programs of shader constants: what a host computes from the parameters of a launch, before it.
//!
//! A program is a list of steps in postfix order over a stack of 32-bit words; it leaves one word.
//! The compiler makes programs, a section of the cubin holds them, and whoever launches the kernel
//! evaluates them. No step can fail on any value.

use std::fmt;

/// What a step does. The number is its byte in a cubin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum StepKind {
    /// Pushes the word at a byte offset of the parameters.
    Param = 1,
    /// Pushes a size of the launch: 0 to 2 threads of a block, 3 to 5 blocks of the grid, by axis.
    Launch = 2,
    /// Pushes a word.
    Word = 3,
    /// The sum of two words.
    Add = 4,
    /// The carry of the sum of three words, of which the last is a carry.
    Carry = 5,
    /// The low word of a product.
    Mul = 6,
    /// The high word of the product of two unsigned numbers, or of two signed ones.
    MulHighU = 7,
    MulHighS = 8,
    /// The complement of a word.
    Not = 9,
    /// A truth table of three words, as `LOP3` has it.
    Logic = 10,
    /// A funnel shift of the low word, the count and the high word; the bits of the operand are
    /// those of [`FUNNEL`].
    Funnel = 11,
    /// A quotient of unsigned numbers, or of signed ones; all ones if the divisor is zero.
    DivU = 12,
    DivS = 13,
}

/// Bits of the operand of a funnel shift: right, signed, 64 bits wide, wraps, the high word.
pub const FUNNEL: [u32; 5] = [1, 2, 4, 8, 16];

/// For each kind: its name, how many words it takes from the stack, and the bytes of its operand.
const KINDS: [(StepKind, &str, usize, usize); 13] = [
    (StepKind::Param, "param", 0, 2),
    (StepKind::Launch, "launch", 0, 1),
    (StepKind::Word, "word", 0, 4),
    (StepKind::Add, "add", 2, 0),
    (StepKind::Carry, "carry", 3, 0),
    (StepKind::Mul, "mul", 2, 0),
    (StepKind::MulHighU, "mulhi_u", 2, 0),
    (StepKind::MulHighS, "mulhi_s", 2, 0),
    (StepKind::Not, "not", 1, 0),
    (StepKind::Logic, "logic", 3, 1),
    (StepKind::Funnel, "funnel", 3, 1),
    (StepKind::DivU, "div_u", 2, 0),
    (StepKind::DivS, "div_s", 2, 0),
];

/// One step, with its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Step {
    pub kind: StepKind,
    /// 0 where the kind has none.
    pub operand: u32,
}

/// Most words on the stack.
pub const DEEPEST: usize = 16;

/// Most steps of a program.
pub const LONGEST: usize = 64;

/// Sizes of the launch that a program may ask for.
pub const SIZES: u32 = 6;

impl Step {
    /// A step without an operand.
    pub fn plain(kind: StepKind) -> Step {
        Step { kind, operand: 0 }
    }

    /// How many words it takes from the stack.
    pub fn takes(self) -> usize {
        KINDS[self.kind as usize - 1].2
    }

    /// Bytes of the operand in a cubin.
    pub fn operand_bytes(self) -> usize {
        KINDS[self.kind as usize - 1].3
    }

    /// The kind of a byte.
    pub fn kind_of(byte: u8) -> Option<StepKind> {
        KINDS.get(usize::from(byte).checked_sub(1)?).map(|row| row.0)
    }

    fn parse(text: &str) -> Option<Step> {
        let (name, operand) = text.split_once(':').map_or((text, None), |(name, operand)| (name, Some(operand)));
        let row = KINDS.iter().find(|row| row.1 == name)?;
        let operand = match operand {
            Some(operand) if row.3 > 0 => operand.parse().ok()?,
            None if row.3 == 0 => 0,
            _ => return None,
        };
        Some(Step { kind: row.0, operand })
    }
}

impl fmt::Display for Step {
    /// The name, and the operand in decimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name, _, bytes) = KINDS[self.kind as usize - 1];
        if bytes > 0 { write!(f, "{name}:{}", self.operand) } else { f.write_str(name) }
    }
}

/// The steps of one word.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Program(pub Vec<Step>);

impl Program {
    /// A program of one step.
    pub fn of(kind: StepKind, operand: u32) -> Program {
        Program(vec![Step { kind, operand }])
    }

    /// The program that applies a step to the results of others.
    pub fn apply(parts: &[&Program], step: Step) -> Program {
        let mut steps: Vec<Step> = parts.iter().flat_map(|part| part.0.iter().copied()).collect();
        steps.push(step);
        Program(steps)
    }

    /// Reads the text form: steps with dots between them.
    pub fn parse(text: &str) -> Option<Program> {
        text.split('.').map(Step::parse).collect::<Option<_>>().map(Program)
    }

    /// Checks that it leaves one word, keeps the limits, and reads only parameters that exist.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn check(&self, param_bytes: u32) -> Result<(), String> {
        if self.0.len() > LONGEST {
            return Err(format!("{} steps are more than {LONGEST}", self.0.len()));
        }
        let mut depth = 0usize;
        for step in &self.0 {
            let word = |end: Option<u32>| end.is_some_and(|end| end <= param_bytes) && step.operand.is_multiple_of(4);
            if step.kind == StepKind::Param && !word(step.operand.checked_add(4)) {
                return Err(format!("no word of {param_bytes} bytes of parameters is at {}", step.operand));
            }
            if step.kind == StepKind::Launch && step.operand >= SIZES {
                return Err(format!("a launch has no size {}", step.operand));
            }
            depth = depth.checked_sub(step.takes()).ok_or("a step takes more words than there are")? + 1;
            if depth > DEEPEST {
                return Err(format!("more than {DEEPEST} words are on the stack"));
            }
        }
        if depth == 1 { Ok(()) } else { Err(format!("it leaves {depth} words")) }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            write!(f, "{}{step}", if i > 0 { "." } else { "" })?;
        }
        Ok(())
    }
}

/// A word that the host patches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchedWord {
    /// Byte offset in the bank.
    pub offset: u32,
    pub program: Program,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_in_the_order_of_their_bytes() {
        for (i, row) in KINDS.iter().enumerate() {
            assert_eq!(row.0 as usize, i + 1);
            assert_eq!(Step::kind_of(row.0 as u8), Some(row.0));
        }
        assert_eq!((Step::kind_of(0), Step::kind_of(14)), (None, None));
    }

    #[test]
    fn text_is_read_back_and_bad_programs_are_found_out() {
        let text = "param:8.word:12.add.launch:3.mul";
        let program = Program::parse(text).unwrap();
        assert_eq!((program.to_string().as_str(), program.check(12)), (text, Ok(())));
        let wrong = |text: &str| Program::parse(text).unwrap().check(12).unwrap_err();
        assert_eq!(wrong("param:10"), "no word of 12 bytes of parameters is at 10");
        assert_eq!(wrong("param:12"), "no word of 12 bytes of parameters is at 12");
        assert_eq!(wrong("launch:6"), "a launch has no size 6");
        assert_eq!(wrong("word:1.add"), "a step takes more words than there are");
        assert_eq!(wrong("word:1.word:2"), "it leaves 2 words");
        assert_eq!((Program::parse("add:1"), Program::parse("word"), Program::parse("")), (None, None, None));
    }
}
