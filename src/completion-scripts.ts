/**
 * What each shell loads. All ask `pulumi-lock-janitor complete -- <words>`, which answers with a line for each offer (the word, a tab, its description) and a
 * last one that begins with a colon. No word of the command line is ever evaluated: it may have been pasted from a lock.
 */
export const COMPLETION_SCRIPTS: ReadonlyMap<string, string> = new Map([
  [
    "bash",
    String.raw`# bash completion for pulumi-lock-janitor: source <(pulumi-lock-janitor completion bash)
_pulumi_lock_janitor() {
  local offer
  COMPREPLY=()
  while IFS=$'\t' read -r offer _; do
    [[ -z $offer || $offer == :* ]] || COMPREPLY+=("$offer")
  done < <(pulumi-lock-janitor complete -- "${"$"}{COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _pulumi_lock_janitor pulumi-lock-janitor
`,
  ],
  [
    "zsh",
    String.raw`#compdef pulumi-lock-janitor
# zsh completion for pulumi-lock-janitor: source <(pulumi-lock-janitor completion zsh), or save it as _pulumi-lock-janitor in a folder of $fpath
_pulumi_lock_janitor() {
  local -a offers
  local line
  for line in "${"$"}{(@f)$(pulumi-lock-janitor complete -- "${"$"}{(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -z $line || $line == :* ]] || offers+=("${"$"}{${"$"}{line%%$'\t'*}//:/\\:}:${"$"}{line#*$'\t'}")
  done
  if (( ${"$"}{#offers} )); then _describe 'pulumi-lock-janitor' offers; else _files; fi
}
if [[ ${"$"}{funcstack[1]} == _pulumi-lock-janitor ]]; then _pulumi_lock_janitor "$@"; else compdef _pulumi_lock_janitor pulumi-lock-janitor; fi
`,
  ],
  [
    "fish",
    String.raw`# fish completion for pulumi-lock-janitor: pulumi-lock-janitor completion fish | source
function __pulumi_lock_janitor_complete
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    set -l current (commandline --current-token --cut-at-cursor)
    pulumi-lock-janitor complete -- $words[2..] "$current" 2>/dev/null | string match --invert --regex '^:|^$'
end
complete --command pulumi-lock-janitor --arguments '(__pulumi_lock_janitor_complete)'
`,
  ],
  [
    "powershell",
    String.raw`# PowerShell completion for pulumi-lock-janitor: pulumi-lock-janitor completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName pulumi-lock-janitor -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $words = @($commandAst.CommandElements | Select-Object -Skip 1 | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { $_.Extent.Text })
  & pulumi-lock-janitor complete -- @words "$wordToComplete" 2>$null | Where-Object { $_ -and $_ -notmatch '^:' } | ForEach-Object {
    $value, $description = $_ -split [char]9, 2
    if (-not $description) { $description = $value }
    [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $description)
  }
}
`,
  ],
]);
