_carnot_keys={{keys}}
_carnot() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} flags= words=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W {{commands}} -- "$word"))
    return
  fi
  case ${COMP_WORDS[1]} in
{{cases}}  esac
  case $word in -*) words=$flags ;; esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  case ${COMPREPLY[0]} in *=) compopt -o nospace 2>/dev/null ;; esac
}
complete -o default -o bashdefault -F _carnot carnot
