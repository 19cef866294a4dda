# Run by molsieve_embed: FROM (any file) -> TO (C source that defines SYMBOL).
file(READ ${FROM} hex HEX)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${TO} "extern const char ${SYMBOL}[];\nconst char ${SYMBOL}[] = {\n${bytes}0 };\n")
