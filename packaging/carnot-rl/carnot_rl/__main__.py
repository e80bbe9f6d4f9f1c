from carnot_rl.launcher import main

main()
