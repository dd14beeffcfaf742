# --config: the keys of a file are the options' names; the command line wins; a wrong line is named.
. "$(dirname "$0")/support.bash"

npy x.npy '3, 3' 1 3 2 1 1 3 1 2 1
npy W.npy '3, 3' 0 0 0 0 1 0 0 0 0
npy I.npy '3, 3' 1 0 0 0 1 0 0 0 1
Z='1.0000 2.9577 2.0113 1.0000 1.5401 2.7226 1.0000 2.8642 2.0000'
scaled='1.0000 2.7798 2.0377 1.0000 1.7288 2.5839 1.0000 2.6080 2.0000'

cat >run.conf <<'C'
# The worked example.
query = x.npy
  score=dot   # not divided by √d
out = from-file.npy

plain = true
C
run attention --config run.conf
equal "$Z" "$(values from-file.npy)" "all options from the file"
run attention --config run.conf --score scaled --out from-line.npy
equal "$scaled" "$(values from-line.npy)" "the command line wins"
run attention --score scaled --out before.npy --config run.conf
equal "$scaled" "$(values before.npy)" "the command line wins wherever it stands"

# A parameter of the file is replaced by one of the same name, and kept beside others.
printf 'score = general\nparam = W=W.npy\nparam = WO=I.npy\n' >param.conf
run attention --config param.conf --query x.npy --param W=I.npy --out p.npy
equal "$Z" "$(values p.npy)" "--param over param"

: >empty.conf
run attention --config empty.conf --query x.npy --out e.npy
equal "$scaled" "$(values e.npy)" "an empty file"

printf 'query = x.npy\n\nscroe = dot\n' >bad.conf
refuse 2 "bad.conf:3: no setting 'scroe' for attend attention; did you mean 'score'?" attention --config bad.conf --out z.npy
printf '[attention]\n' >bad.conf
refuse 2 "bad.conf:1: '[attention]' is not of the form key = value" attention --config bad.conf --out z.npy
printf '# first\nheads = many\n' >bad.conf
refuse 2 "bad.conf:2: heads takes a whole number from 1 to 1048576, not 'many'" attention --config bad.conf --out z.npy
printf 'score = dott\n' >bad.conf
refuse 2 "bad.conf:1: no score 'dott'; did you mean 'dot'?" attention --config bad.conf --out z.npy
printf 'plain = perhaps\n' >bad.conf
refuse 2 "bad.conf:1: plain takes true or false, not 'perhaps'" attention --config bad.conf --out z.npy
printf 'config = run.conf\n' >bad.conf
refuse 2 "bad.conf:1: no setting 'config' for attend attention" attention --config bad.conf --out z.npy
printf 'out =\n' >bad.conf
refuse 2 "bad.conf:1: out takes FILE, not an empty word" attention --config bad.conf --query x.npy
refuse 1 "--config: cannot read 'missing.conf': No such file or directory" attention --config missing.conf --out z.npy
refuse 2 "no option '--config-file'; it is called --config" list --config-file x
finish
