//! The text form of Ori: printer and parser.
//!
//! One line per instruction: `@!p3 IADD3{x=X} d=r5 pu=p2 a=-r3 b=0x10 old(r1 _ _) ; 12`. A register
//! is its file and number (`r`, `u`, `p`, `q` for UP, `cb` for a convergence barrier), a tuple
//! `{r1,r2}`, the hard-wired register `Z`, a label a block, a special register `s33`, a constant
//! `c[0][0x160]`. Behind the operands stand implicit and tied ones, flags and the control word. The
//! first line has the attributes of the function that differ from those of a new one; the lines
//! `phys`, `fixed` and `uniform` those of registers. The parser restores all of it but the values
//! that a debugger reads.

mod parse;
mod print;

pub use parse::parse;
pub use print::{instruction, print};

use super::function::File;

const FILES: [(File, &str); 6] =
    [(File::R, "r"), (File::UR, "u"), (File::P, "p"), (File::UP, "q"), (File::B, "cb"), (File::UB, "ucb")];

#[cfg(test)]
mod tests {
    use super::{parse, print};

    const TEXT: &str = "function k sm_90 ssa
phys u3=4 u4=5
b0:
  UNDEF d=r9
  LDC d=r0 c=c[0][0x210]
  ISETP{cmp=LT} pu=p1 a=r0 b=0xffffffff
  @!p1 BRA target=b2 ; 7
  BRA target=b1
b1:
  @p1 IADD3 d=r2 a=-r0 b=0x10 c=Z pp=!Z old(r9 _ _)
  LDG{size=64 e=E} d={r5,r6} a={r0,r2} desc={u3,u4} off=0x0
  BRA target=b2
b2:
  PHI d=r7 b0=r0 b1=r2
  EXIT
";

    #[test]
    fn text_round_trips() {
        let function = parse(TEXT).unwrap();
        assert_eq!(print(&function), TEXT);
        assert_eq!(crate::ori::verify::verify(&function), Vec::<String>::new());
    }

    #[test]
    fn errors_name_the_line() {
        let wrong = TEXT.replace("UNDEF", "UNDEAF");
        assert_eq!(parse(&wrong).err().unwrap(), "line 4: no opcode is called `UNDEAF`");
    }
}
