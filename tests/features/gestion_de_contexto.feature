# language: es
Característica: Gestión de Contexto

  Escenario: Mantener contexto en conversación
    Dado inicié conversación preguntando sobre AAPL
    Y el agente analizó AAPL
    Cuando pregunto "¿Y qué opinas del volumen?"
    Entonces el agente entiende que me refiero a AAPL
    Y no necesito repetir el símbolo

  Escenario: Recordar preferencias entre sesiones
    Dado ayer configuré preferencia "siempre mostrar disclaimer"
    Y cerré la aplicación
    Cuando inicio nueva conversación hoy
    Entonces el agente recuerda mi preferencia
    Y incluye disclaimers automáticamente

  Escenario: Enriquecimiento automático de contexto
    Dado tengo posición abierta en TSLA
    Y hay alerta activa para TSLA a $240
    Cuando pregunto "¿Cómo va mi inversión?"
    Entonces el agente automáticamente incluye info de TSLA
    Y menciona la alerta activa
    Y muestra P&L actual

  Escenario: Resumen de conversación larga
    Dado tenemos 30 mensajes en la conversación
    Y se acerca el límite de tokens
    Cuando envío nuevo mensaje
    Entonces el sistema resume mensajes antiguos
    Y preserva puntos clave de la conversación
    Y el agente responde coherentemente

  Escenario: Contexto de mercado automático
    Dado el mercado US está cerrado (es sábado)
    Cuando pregunto "¿Debería comprar AAPL ahora?"
    Entonces el agente indica que el mercado está cerrado
    Y sugiere usar paper trading o esperar apertura
